"""The export of the audit: all rows in the order of time, in pages, and those of a window or of a caller alone."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError

from tasks_app.audit import export as module
from tasks_app.ids import uuid7_at
from tasks_app.models import Act, AuditEntry, Refusals, RefusedCalls
from tasks_app.upkeep.deletion import Deletion
from tasks_app.upkeep.row_kinds import ROW_KINDS
from tests.conftest import Person
from tests.support.commands import printed

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def entry(at: datetime, caller: str = "ann", tenant: str = "acme", number: int = 0) -> None:
    id = f"{uuid7_at(at)[:-6]}{number:06d}"
    AuditEntry.objects.create(
        id=id,
        created_at=at,
        caller_id=1,
        tenant_id=1,
        caller=caller,
        tenant=tenant,
        credential="key:1",
        peer=None,
        door="http",
        method="SendMessage",
        outcome="result",
        exchange_id=id,
    )


def refusal(hour: datetime, caller: str = "ann", reason: str = "RATE_LIMITED") -> None:
    RefusedCalls.objects.create(
        hour=hour,
        caller_id=1,
        tenant_id=1,
        caller=caller,
        tenant="acme",
        credential="key:1",
        reason=reason,
        count=7,
        last_at=hour,
    )


def stranger(minute: datetime, address: str) -> None:
    Refusals.objects.create(minute=minute, address=address, unauthenticated=3)


def act(at: datetime) -> None:
    Act.objects.create(
        at=at,
        operator="root",
        door="admin",
        verb="revoke",
        kind="API key",
        object_id="1",
        name="n",
        after='{"a":1}',
        peer="10.0.0.1",
    )


def exported(*words: str) -> list[dict[str, Any]]:
    return printed("a2a", "audit", "export", *words)


def test_the_tables_are_merged_in_the_order_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    for place in range(5):
        refusal(START + place * HOUR, reason=f"R{place}")
        refusal(START + (4 - place) * HOUR, caller="bob", reason="R")
        entry(START + place * HOUR + timedelta(minutes=1), number=place)
        act(START + place * HOUR + timedelta(minutes=2))
        for address in ("10.0.0.1", "10.0.0.2", "10.0.0.3"):
            stranger(START + place * HOUR + timedelta(minutes=3), address)
    rows = exported()
    assert [row["kind"] for row in rows] == ["refused", "refused", "entry", "act", *["strangers"] * 3] * 5
    assert exported() == rows
    assert rows[3]["after"] == {"a": 1}
    assert (rows[3]["object_kind"], rows[3]["peer"]) == ("API key", "10.0.0.1")
    assert len({(row["kind"], row["id"]) for row in rows}) == 35


def test_a_window_and_a_caller_choose_rows() -> None:
    for place in range(4):
        entry(START + place * HOUR, caller="ann" if place % 2 else "bob", tenant="acme" if place < 2 else "other")
        refusal(START + place * HOUR)
        act(START + place * HOUR)
    window = ("--since", "2026-03-01T01:00", "--until", "2026-03-01T03:00")
    assert [row["kind"] for row in exported(*window)] == ["entry", "refused", "act"] * 2
    assert [(row["kind"], row["tenant"]) for row in exported("--caller", "bob")] == [
        ("entry", "acme"),
        ("entry", "other"),
    ]
    assert [row["tenant"] for row in exported("--caller", "other/bob")] == ["other"]
    assert len(exported("--caller", "acme/bob")) == 1, "callers of entries need not exist any more"


def test_an_export_that_can_only_be_empty_is_refused(owner: Person) -> None:
    for caller in ("eve", "home/eve", "other/owner"):
        with pytest.raises(CommandError, match=f"There is no principal '{caller}'"):
            exported("--caller", caller)
    assert exported("--caller", "home/owner") == exported("--caller", "owner") == [], "it has made no calls"
    for command in (("audit", "export"), ("usage",)):
        with pytest.raises(CommandError, match="--since must be earlier than --until"):
            printed("a2a", *command, "--since", "2026-03-03", "--until", "2026-03-02")


def test_old_rows_of_the_audit_go_in_small_steps_and_acts_stay() -> None:
    for place in range(5):
        entry(START + place * HOUR, number=place)
        refusal(START + place * HOUR)
    act(START)
    for name, model in (("audit", AuditEntry), ("refused_calls", RefusedCalls)):
        deletion = Deletion(ROW_KINDS[name])
        deletion.rows = 2
        steps = []
        for _ in range(2):
            step = deletion.delete_next(START + 3 * HOUR)
            assert step
            deletion.rows = 2
            steps.append((step.portion.count, step.portion.more))
        assert steps == [(2, True), (1, False)], name
        assert model.objects.count() == 2
    assert Act.objects.count() == 1


def test_a_purge_leaves_the_audit_until_its_own_time(settings: Any) -> None:
    settings.A2A_AUDIT_DAYS = 100_000
    entry(START)
    refusal(START)
    printed("a2a", "purge", "--before", "1s")
    assert (AuditEntry.objects.count(), RefusedCalls.objects.count()) == (1, 1)
    settings.A2A_AUDIT_DAYS = 1
    printed("a2a", "purge", "--before", "1s")
    assert (AuditEntry.objects.count(), RefusedCalls.objects.count()) == (0, 0)
