"""The exchange of a request that came through no door: nothing of it is recorded."""

from msgspec import UNSET

from a2a.answers import Result
from tasks_app.database.rows import BodyRow, ExchangeRow
from tasks_app.exchanges.exchange import OpenExchange


class NoExchange(OpenExchange):
    """An exchange without a record, so that operations need not ask whether there is one."""

    def __init__(self) -> None:
        super().__init__(door="", request_id="", rpc_id=UNSET, request=b"")

    def about(self, task_id: str | None, context_id: str | None = None, seq: int | None = None) -> None:
        pass

    def about_reply(self, context_id: str) -> None:
        pass

    def halves(self, result: Result | None) -> tuple[ExchangeRow | None, BodyRow | None]:
        return None, None

    def unwritten(self) -> None:
        pass


NO_EXCHANGE = NoExchange()
"""One for all requests: it has no state."""
