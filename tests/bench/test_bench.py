"""The measuring itself: what is read, what is counted, and that nothing is left behind. No speed is asserted."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

from tests.bench import load, report
from tests.bench.__main__ import main
from tests.bench.load import Calls, Line, LoadFailed
from tests.bench.report import Result
from tests.bench.shapes import SHAPES, pinning
from tests.faults.nodes import ROOT
from tests.support.servers import COMMAND_SECONDS

BENCH = [sys.executable, "-m", "tests.bench"]
ALL_WELL = """Running 2s test @ http://127.0.0.1:8000/jsonrpc
BENCH sent=200 answered=200 wrong=0 lost=0 seconds=0.500000 p50_ms=4.250 p95_ms=9.500 p99_ms=30.125
EXAMPLE
"""

# ----------------------------------------------------------- what wrk says


def test_the_last_lines_of_wrk_become_numbers() -> None:
    seen = load.seen(ALL_WELL)
    assert seen == (200, 0, "", {"per_second": 400.0, "p50_ms": 4.25, "p95_ms": 9.5, "p99_ms": 30.125})


def test_a_wrong_answer_is_an_error_and_shown() -> None:
    said = ALL_WELL.replace("wrong=0", "wrong=3").replace("EXAMPLE", 'EXAMPLE 200 {"error":{"code":-32603}}')
    seen = load.seen(said)
    assert (seen.answers, seen.errors, seen.example) == (197, 3, '200 {"error":{"code":-32603}}')


def test_a_call_without_an_answer_is_an_error() -> None:
    seen = load.seen(ALL_WELL.replace("answered=200", "answered=198").replace("lost=0", "lost=1"))
    assert (seen.answers, seen.errors, seen.example) == (198, 2, "2 calls were not answered")


def test_a_load_in_which_nothing_was_answered_has_no_rate() -> None:
    seen = load.seen(
        "BENCH sent=32 answered=0 wrong=0 lost=32 seconds=-9.5 p50_ms=0.000 p95_ms=0.000 p99_ms=0.000\nEXAMPLE \n"
    )
    assert (seen.answers, seen.errors, seen.values["per_second"]) == (0, 32, 0.0)


def test_wrk_that_does_not_measure_is_quoted() -> None:
    with pytest.raises(LoadFailed, match="unable to connect"):
        load.seen("", "unable to connect to 127.0.0.1:1 Connection refused")


def test_every_send_has_an_id_of_its_own_in_a_body_that_is_json() -> None:
    calls = load.send("bench-quick", wait=True, expected="")
    _, _, _, _, _, prefix, before, after, ids = load.arguments(calls, 1, 10, "")
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-", prefix)
    body = orjson.loads(before + prefix + "0" * 12 + after)
    assert body["params"]["message"]["messageId"] == prefix + "0" * 12
    assert ids == ""


def test_a_body_without_an_id_is_sent_as_it_is() -> None:
    arguments = load.arguments(Calls("/jsonrpc", "tasks", "ListTasks", {"pageSize": 20}), 1, 10, "")
    assert orjson.loads(arguments[6])["params"] == {"pageSize": 20}
    assert arguments[7] == ""


def test_a_percentile_is_a_value_that_was_seen() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert [load.percentile(values, share) for share in (1, 50, 99, 100)] == [1.0, 50.0, 99.0, 100.0]
    assert load.percentile([7.0], 99) == 7.0


# ------------------------------------------------------------- what is told


def rounds(*rates: float, label: str = "send", errors: int = 0) -> list[Line]:
    return [Line(label, {"per_second": rate}, errors, "503 busy" if errors else "") for rate in rates]


def test_the_median_counts_and_the_least_and_the_most_are_shown() -> None:
    result = Result("SQLite", "nothing pinned", rounds(1200, 990, 5000), 3, {"completed": 3})
    assert result.spreads() == {"send": {"per_second": (1200, 990, 5000)}}
    assert "1,200 (990-5,000)" in report.table(result)
    assert "3 completed; answers: 3; equal" in report.table(result)
    assert result.good


@pytest.mark.parametrize(
    "states",
    [{"completed": 2}, {"completed": 4}, {"completed": 3, "failed": 1}, {"completed": 2, "failed": 1}, {}],
    ids=["a task missing", "a task too many", "a failed one besides", "a failed one", "none"],
)
def test_rows_that_are_not_the_answers_are_no_good_run(states: dict[str, int]) -> None:
    result = Result("SQLite", "nothing pinned", rounds(1200), 3, states)
    assert not result.good
    assert "NOT EQUAL" in report.table(result)


def test_an_error_makes_no_good_run_and_its_first_answer_is_shown() -> None:
    result = Result("SQLite", "nothing pinned", rounds(1200) + rounds(90, label="get", errors=2), 3, {"completed": 3})
    assert not result.good
    assert "error of get: 503 busy" in report.table(result)


def test_a_number_that_the_system_lacks_has_no_column() -> None:
    lines = [Line("send", {"per_second": 1.5, "serve_mib": 0.0})]
    assert report.names(lines) == ["per_second"]
    assert "web MiB" not in report.table(Result("SQLite", "nothing pinned", lines))


def test_one_process_is_pinned_where_there_are_two_cores_and_a_worker_never() -> None:
    assert pinning(SHAPES["postgres"], frozenset({5, 2, 9})) == (frozenset({2}), frozenset({5}))
    assert str(pinning(SHAPES["sqlite"], frozenset({2, 5}))) == "server on core 2, load and databases on core 5"
    assert str(pinning(SHAPES["sqlite"], frozenset({0}))) == "nothing pinned"
    assert str(pinning(SHAPES["worker"], frozenset({0, 1}))) == "nothing pinned"


# ---------------------------------------------------------- how it is called


def test_without_wrk_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="apt install wrk"):
        main(["--only", "send", "streams"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--only", "sned"], "invalid choice: 'sned' (choose from 'send'"),
        (["--shape", "mysql"], "invalid choice: 'mysql'"),
        (["--seconds", "0"], "--seconds: must be a number from 0.01 to 3600, not '0'"),
        (["--seconds", "nan"], "--seconds: must be a number from 0.01 to 3600, not 'nan'"),
        (["--rounds", "0"], "--rounds: must be a whole number from 1 to 100, not '0'"),
        (["--rounds", "1.5"], "--rounds: must be a whole number from 1 to 100, not '1.5'"),
        (["--json", "/nowhere/at/all.json"], "--json: cannot write /nowhere/at/all.json: No such file or directory"),
        (["--rounds", "many"], "--rounds: must be a whole number from 1 to 100, not 'many'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_option_is_told(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


# ----------------------------------------------------------------- for real


@pytest.mark.bench
def test_a_short_run_counts_as_many_rows_as_answers(tmp_path: Path) -> None:
    only = [*(["send", "get", "list", "card", "queued"] if load.has_wrk() else []), "streams", "sockets"]
    written = tmp_path / "bench.json"
    command = [*BENCH, "--shape", "sqlite", "--rounds", "1", "--seconds", "0.1", "--json", str(written), "--only"]
    done = subprocess.run(
        [*command, *only], cwd=ROOT, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "; equal" in done.stdout
    (result,) = orjson.loads(written.read_bytes())["results"]
    assert result["equal"]
    assert result["errors"] == 0
    assert result["states"] == {"completed": result["answers"]}
    assert result["answers"] > 100
    assert len(result["spreads"]) == len(only) + 4  # streams have two lines, sockets four


NUMBERS = {
    "normal load: 50 messages a second (< 0.5 cores)": {"per_second", "p95_ms", "serve_cpu"},
    "calls of JSON-RPC (1,000 a second)": {"per_second", "serve_cpu"},
    "- status (< 100 ms)": {"p95_ms"},
    "- quick send (< 500 ms)": {"p95_ms"},
    "- task send (< 200 ms)": {"p95_ms"},
    "- card (< 100 ms)": {"p95_ms"},
    "set-up of 100 streams at the same moment (< 300 ms)": {"p95_ms"},
    "messages of one agent, each with its answer (50 a second)": {"per_second"},
    "batch of 20 items (10 at the same time)": {"at_once"},
    "memory of an instance (< 512 MB)": {"serve_mib"},
    "question, direct": {"p95_ms"},
    "question through both zones (< 50 ms added)": {"p95_ms", "added_ms"},
}
"""The numbers that the systems ask for, by the labels of their lines."""


@pytest.mark.bench
@pytest.mark.skipif(not load.has_wrk(), reason="the load comes from wrk, which is not installed")
@pytest.mark.requirement("SPARC-08", "SPARC-14", "SPARC-15", "SPARC-16", "ZONE-13")
def test_every_number_of_the_systems_is_measured(tmp_path: Path) -> None:
    """Each call is answered, and each task is completed. The times are reported, and not asserted."""
    written = tmp_path / "bench.json"
    command = [*BENCH, "--shape", "sqlite", "--rounds", "1", "--seconds", "0.2", "--json", str(written)]
    done = subprocess.run(
        [*command, "--only", "seeds"], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = orjson.loads(written.read_bytes())["results"]
    assert result["equal"]
    assert result["errors"] == 0
    values = {line["label"]: line["values"] for line in result["rounds"]}
    assert values.keys() == NUMBERS.keys()
    for label, names in NUMBERS.items():
        assert names <= values[label].keys(), label
    assert values["batch of 20 items (10 at the same time)"]["at_once"] >= 10


@pytest.mark.bench
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_stop_it_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [*BENCH, "--shape", "sqlite", "--rounds", "100", "--only", "streams"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        try:
            assert any("round 1 of 100" in line for line in process.stderr)
            (log,) = tmp_path.glob("*/serve.log")
            started = processes_with(str(log))
            assert started
            process.send_signal(number)
            assert process.wait(30) == 128 + number
        finally:
            process.kill()
    assert processes_with(str(log)) & started == set()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.bench
def test_a_server_that_dies_ends_the_run_with_its_log(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [*BENCH, "--shape", "sqlite", "--rounds", "100", "--only", "streams"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        try:
            assert any("round 1 of 100" in line for line in process.stderr)
            (log,) = tmp_path.glob("*/serve.log")
            (server,) = processes_with(str(log))
            os.kill(server, signal.SIGKILL)
            assert "manage.py serve ended with -9 under load" in process.stderr.read()
            assert process.wait(30) == 1
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []


def processes_with(path: str) -> set[int]:
    """Return the processes that write to the file."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/fd/1"):
        with suppress(OSError):  # it has ended meanwhile
            if str(link.readlink()).removesuffix(" (deleted)") == path:
                found.add(int(link.parts[2]))
    return found
