"""Searches of the usage history among a million rows. Their times are reported, and not asserted."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.faults.conftest import Start, shell
from tests.support.desk import logged_in

pytestmark = [pytest.mark.fault, pytest.mark.long]
ROWS, CHANNELS, DAYS, ROUNDS = 1_000_000, 500, 90, 20
PAGE = 50
"""Rows of a page."""
FILL = """
insert into tasks_app_usage
    (id, created_at, tenant_id, owner_id, correlation_id, channel, task_id, outcome, skipped)
select substr(stamp, 1, 8) || '-' || substr(stamp, 9, 4) || '-7000-8000-' || lpad(to_hex(n), 12, '0'),
    at, tenant_id, owner_id, 'c-' || n, case when n %% 250000 = 0 then 'rare' else 'C' || n %% %(channels)s end,
    '', 'executed', ''
from (select n, at, lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') as stamp
    from (select n, %(now)s::timestamptz - n * interval '1 day' * %(days)s::float / %(rows)s as at
        from generate_series(1, %(rows)s) as n) as times) as stamps,
    (select id as owner_id, tenant_id from tasks_app_principal order by id limit 1) as owner
"""


def rows_of(url: str, condition: str) -> int:
    """Return the number of rows with a condition."""
    with psycopg.connect(url) as connection:
        row = connection.execute(f"select count(*) from tasks_app_usage where {condition}").fetchone()  # type: ignore[arg-type]  # noqa: S608
    assert row
    assert row[0]
    return int(row[0])


@pytest.mark.requirement("ZONE-19")
async def test_a_call_among_a_million_is_found(
    start: Start, postgres: str, record_property: Callable[[str, object], None]
) -> None:
    node = await start(DATABASE_URL=postgres)
    set_password = "from django.contrib.auth.models import User; u = User.objects.get(); u.set_password('p'); u.save()"
    shell(node.folder, set_password, **node.settings)
    now = datetime.now(UTC)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(FILL, {"rows": ROWS, "channels": CHANNELS, "days": DAYS, "now": now})
        connection.execute("vacuum analyze tasks_app_usage")
    day = (now - timedelta(days=40)).date()
    window = {"since": f"{day}T00:00:00Z", "until": f"{day + timedelta(days=1)}T00:00:00Z"}
    in_channel = "channel = 'C7'"
    by_day = f"created_at >= '{day}Z' and created_at < '{day}Z'::timestamptz + interval '1 day'"
    both = f"{in_channel} and {by_day}"
    searches: dict[str, tuple[str, dict[str, Any], str]] = {
        "admin, correlation id": ("/admin/tasks_app/usage/", {"q": "c-765432"}, "correlation_id = 'c-765432'"),
        "admin, channel": ("/admin/tasks_app/usage/", {"channel": "C7"}, in_channel),
        "admin, rare channel": ("/admin/tasks_app/usage/", {"channel": "rare"}, "channel = 'rare'"),
        "admin, day": ("/admin/tasks_app/usage/", {"day": str(day)}, by_day),
        "admin, channel and day": ("/admin/tasks_app/usage/", {"channel": "C7", "day": str(day)}, both),
        "API, correlation id": ("/api/v1/usage/", {"correlation_id": "c-765432"}, "correlation_id = 'c-765432'"),
        "API, channel": ("/api/v1/usage/", {"channel": "C7"}, in_channel),
        "API, rare channel": ("/api/v1/usage/", {"channel": "rare"}, "channel = 'rare'"),
        "API, day": ("/api/v1/usage/", window, by_day),
        "API, channel and day": ("/api/v1/usage/", {"channel": "C7"} | window, both),
    }
    with logged_in(node.base, "operator", "p") as operator:
        for name, (path, query, condition) in searches.items():
            count, times = rows_of(postgres, condition), list[float]()
            for _ in range(ROUNDS):
                began = time.perf_counter()
                answer = operator.get(path, params=query)
                times.append(1000 * (time.perf_counter() - began))
                assert answer.status_code == 200, answer.text
                is_json = path.startswith("/api")
                found = len(answer.json()["results"]) if is_json else answer.text.count('class="field-show_created_at')
                assert found == min(count, PAGE), (name, found)
            record_property(f"{name}: median and most of {ROUNDS}, in ms", [round(sorted(times)[i]) for i in (10, -1)])
