"""The last use of each key: noted in the process, and stored in groups, at most once a minute for a key.

A process that is killed loses the notes since the last round.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import transaction

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.models import ApiKey

EVERY = timedelta(minutes=1)
"""The time for which the stored last use of a key is left as it is."""


class LastUses:
    """The last uses of keys in this process that are not stored yet."""

    def __init__(self) -> None:
        self._times: dict[int, datetime] = {}

    def note(self, key_id: int) -> None:
        """Note a use of the key, now."""
        self._times[key_id] = clock.now()

    def flush(self) -> None:
        """Store the last uses. Those that the database refuses are kept for the next time, unless newer ones came."""
        times, self._times = self._times, {}
        if not times:
            return
        try:
            bridge.do(Do(lambda: store(times)), patience=0)
        except Exception:
            self._times = times | self._times
            raise


def store(times: Mapping[int, datetime]) -> int:
    """Store the last uses of keys whose stored one is older than EVERY; return how many.

    Keys that another process has locked are skipped: it stores a last use as well.
    """
    with transaction.atomic():
        rows = (
            ApiKey.objects.select_for_update(skip_locked=True, no_key=True).filter(pk__in=sorted(times)).order_by("pk")
        )
        due = [row for row in rows.only("pk", "last_used_at") if _is_due(row.last_used_at, times[row.pk])]
        for row in due:
            row.last_used_at = times[row.pk]
        ApiKey.objects.bulk_update(due, ["last_used_at"])
    return len(due)


def _is_due(stored: datetime | None, last: datetime) -> bool:
    return stored is None or last - stored >= EVERY


last_uses = LastUses()
"""The last uses of this process."""
