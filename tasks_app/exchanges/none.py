"""The exchange of a request that came through no door: nothing of it is recorded."""

from a2a.answers import Result
from a2a.documents import Encoded
from tasks_app.database.rows import AuditRow, BodyRow, ExchangeRow


class NoExchange:
    """An exchange without a record, so that operations need not ask whether there is one."""

    __slots__ = ("request_bytes",)
    answer = None

    def __init__(self, request_bytes: int = 0) -> None:
        self.request_bytes = request_bytes
        """The size of the request. The message of a large one is encoded off the loop."""

    def about(self, task_id: str | None, context_id: str | None = None, seq: int | None = None) -> None:
        pass

    def about_reply(self, context_id: str) -> None:
        pass

    def about_agent(self, name: str) -> None:
        pass

    def halves(self, result: Result | None) -> tuple[ExchangeRow | None, BodyRow | None]:
        return None, None

    def begin_change(self) -> None:
        pass

    def change_nothing(self) -> None:
        pass

    def entry(self, webhook: str = "") -> AuditRow | None:
        return None

    def confirm(self, row: ExchangeRow | None) -> None:
        pass

    def undo(self) -> None:
        pass

    def keep(self, answer: Encoded) -> None:
        pass

    def keep_result(self, result: Result) -> None:
        pass


NO_EXCHANGE = NoExchange()
"""The exchange of a small request."""
