"""A version that differs little is a file that makes it by replace(), and two lines in a2a/languages.py."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import a2a

FILE = """
from msgspec.structs import replace

from a2a.dialects import {base}

DIALECT = replace({base}.DIALECT, name="a2a-{version}", version="{version}")
"""
IMPORT, LIST = "from a2a.dialects import discovery, rest_0_x, v0_2,", "= (v1_0.DIALECT,"
SEEN = """
from a2a import cards
from a2a.choice import version_error
from a2a.card_choice import card_encoder
from a2a.envelopes import Member
from a2a.languages import DIALECTS, ALL

def choose(endpoint, method, version):
    member = Member(id=1, method=method, params=None, source=None)
    return ALL.endpoints[endpoint].choose(member, version)[0]

newest, *_ = DIALECTS
(send, said), (create, hook) = {params}.items()
dialect = choose("rpc", send, "{version}.0")
assert dialect is newest is ALL.by_name["a2a-{version}"] is ALL.pushing["a2a-{version}"]
assert choose("rpc", send, None) is dialect, "the newest is meant by default"
assert dialect.methods[send].decode(said).push_config.url == dialect.methods[create].decode(hook).config.url
assert ALL.card_versions == {versions}
assert version_error("9.9", DIALECTS).facts["supportedVersions"] == ",".join(["0.2", *reversed({versions})])
assert card_encoder("agent-card.json", "{version}") == (dialect.encode_card, ("{version}",))
on_path = choose("{family}", send, "{version}")
assert on_path.name == (dialect.name if "{family}" == "rest" else "a2a-0.3-proto")
assert choose("{family}", send, None).name != dialect.name, "an older client of REST names no version"
print("seen")
"""
HOOK = {"url": "https://x.example"}
SAID = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}
OLD_SAID = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "x"}]}
NEW = {
    "SendMessage": {"message": SAID, "configuration": {"taskPushNotificationConfig": HOOK}},
    "CreateTaskPushNotificationConfig": {"taskId": "t"} | HOOK,
}
OLD = {
    "message/send": {"message": OLD_SAID, "configuration": {"pushNotificationConfig": HOOK}},
    "tasks/pushNotificationConfig/set": {"taskId": "t", "pushNotificationConfig": HOOK},
}


@pytest.mark.parametrize(
    ("version", "base", "params", "family"), [("1.1", "v1_0", NEW, "rest"), ("0.4", "v0_3", OLD, "rest-0.x")]
)
def test_a_version_that_differs_little_takes_a_file_and_two_lines(
    tmp_path: Path, version: str, base: str, params: object, family: str
) -> None:
    here = tmp_path / "a2a"
    shutil.copytree(Path(a2a.__file__).parent, here, ignore=shutil.ignore_patterns("__pycache__"))
    name, table = f"v{version.replace('.', '_')}", here / "languages.py"
    (here / "dialects" / f"{name}.py").write_text(FILE.format(base=base, version=version), encoding="utf-8")
    source = table.read_text(encoding="utf-8")
    assert (source.count(IMPORT), source.count(LIST)) == (1, 1)
    source = source.replace(IMPORT, f"{IMPORT} {name},").replace(LIST, f"= ({name}.DIALECT, v1_0.DIALECT,")
    table.write_text(source, encoding="utf-8")
    wanted = SEEN.format(params=params, version=version, versions=(version, "1.0", "0.3"), family=family)
    done = subprocess.run([sys.executable, "-c", wanted], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("seen\n", "")
