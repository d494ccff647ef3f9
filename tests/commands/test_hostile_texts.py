"""Texts of callers and agents in what commands print: they do not move the cursor of an operator's terminal."""

from io import StringIO

import orjson
import pytest
from django.core.management import CommandError, call_command

from a2a.events import StatusChanged
from a2a.states import TaskState
from tasks_app.doctor import Finding
from tasks_app.management.nouns import doctor
from tasks_app.models import Principal
from tests.support.commands import text_of
from tests.support.operators import exchange, status, task

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
HOSTILE = "\x1b[2J\x9b31m\x7f\x85\u2028\u202ered\U000e0041"
"""Control characters of both kinds, of which JSON escapes only the first, direction marks, lines and hidden letters."""
FRIENDLY = "\N{WAVING HAND SIGN} \N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER} \u3000 \u05e9\u05dc\u05d5\u05dd"


@pytest.mark.parametrize("words", ["tasks list", "tasks show {task}", "exchanges {call}", "exchanges {call} --bodies"])
def test_no_line_of_a_command_has_a_character_that_moves_a_cursor(words: str, olga: Principal) -> None:
    hostile = HOSTILE + FRIENDLY
    row = task(olga, StatusChanged(status=status(TaskState.FAILED, hostile)), words=hostile, context_id=hostile)
    call = exchange(olga, orjson.dumps({"x": hostile}).decode(), rpc_id=hostile, context_id=hostile)
    text = text_of(*words.format(task=row.pk, call=call.pk).split())
    assert not [letter for letter in HOSTILE if not letter.isprintable() and letter in text]
    assert FRIENDLY in text
    (line,) = text.splitlines()
    assert orjson.loads(line)["context_id"] == hostile


def test_no_finding_of_the_doctor_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def examine(_: object, so_far: doctor.Examination, __: object) -> list[Finding]:
        so_far.findings = 1
        return [Finding(kind="log", subject="1", problem=f"It has {HOSTILE}.", remedy=FRIENDLY)]

    monkeypatch.setattr(doctor, "examine", examine)
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("a2a", "doctor", stdout=out)
    assert set(out.getvalue()) & set(HOSTILE) == set("[2J31mred")
    assert FRIENDLY in out.getvalue()
