"""Budgets of tenants and principals: set, reset and removed, and the tasks that hold reservations."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from a2a.money import parse_usd, show_usd
from tasks_app.api.problems import refuse_body
from tasks_app.api.resource import Resource, Row
from tasks_app.api.verbs import Body, verb
from tasks_app.models import Budget, Reservation
from tasks_app.models.budgets import PERIODS
from tasks_app.operators import budgets
from tasks_app.operators.audit import Operator
from tasks_app.operators.holders import NoSuchHolder, find_holder

MOST_TASKS = 100
"""Tasks with a reservation that a budget is shown with, the newest ones."""


class BudgetRow(Row):
    class Meta:
        model = Budget
        fields = ("id",)

    def to_representation(self, instance: Budget) -> dict[str, Any]:
        return budgets.line_of(instance)


class NewBudget(Body):
    tenant = serializers.CharField(max_length=64, default="default", help_text="The tenant.")
    principal = serializers.CharField(
        max_length=64, allow_null=True, default=None, help_text="A principal of it; null: all of them together."
    )
    amount = serializers.CharField(max_length=32, help_text="Dollars as text, such as 25 or 0.50.")
    period = serializers.ChoiceField(
        choices=[period for period, _ in PERIODS],
        allow_null=True,
        default=None,
        help_text="When it begins anew, in UTC; null: as before, and total for a new budget.",
    )


class Budgets(Resource):
    segment = "budgets"
    model = Budget
    serializer_class = BudgetRow
    filters = {"tenant": "tenant__name", "principal": "principal__name"}

    def rows(self) -> Any:
        return Budget.objects.select_related("tenant", "principal")

    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        newest = Reservation.objects.filter(budget=row).order_by("-task_id")[:MOST_TASKS]
        tasks = [{"task": one.task_id, "reserved": show_usd(one.amount)} for one in newest]
        return Response(self.describe(row) | {"tasks": tasks})

    @verb(body=NewBudget, one=False)
    def create(self, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Set the budget of a tenant or a principal, whether it has one or not."""
        self.check_tenant(values["tenant"])
        try:
            holder = find_holder(values["tenant"], values["principal"])
        except NoSuchHolder as error:
            raise refuse_body(error) from None
        try:
            amount = parse_usd(values["amount"])
        except ValueError as error:
            raise ValidationError({"amount": str(error)}) from None
        return self.describe(budgets.set_budget(holder, amount, values["period"], operator))

    @verb()
    def reset(self, row: Budget, values: dict[str, Any], operator: Operator) -> None:
        """Set what is spent to zero. Reservations of unfinished tasks stay."""
        budgets.reset_budget(row.principal or row.tenant, operator)

    @verb()
    def remove(self, row: Budget, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Remove the budget, so that nothing limits its holder any more. The answer is the budget as it was."""
        line = self.describe(row)
        budgets.remove_budget(row.principal or row.tenant, operator)
        return line
