"""Wrong logins of operators, and the end of the wait that follows them."""

from typing import Any

from tasks_app.api.problems import check_done
from tasks_app.api.resource import Resource, Row
from tasks_app.api.verbs import verb
from tasks_app.models import WrongLogins
from tasks_app.operators import columns, logins
from tasks_app.operators.audit import Operator


class LoginsRow(Row):
    class Meta:
        model = WrongLogins
        fields = ("id", *columns.WRONG_LOGINS)


class Logins(Resource):
    segment = "logins"
    model = WrongLogins
    moment = "last_at"
    serializer_class = LoginsRow
    filters = {"kind": "kind", "value": "value"}

    @verb()
    def unlock(self, row: WrongLogins, values: dict[str, Any], operator: Operator) -> None:
        """Let the user or the address log in again without a wait."""
        check_done(any(logins.unlock(row.value, operator).values()), row.kind, "unlocked already")
