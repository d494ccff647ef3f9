"""The tables of budgets. limits/budgets.py changes their amounts, together with the tasks that they admit."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from tasks_app.models.callers import Principal, Tenant
from tasks_app.models.tasks import Task

TOTAL, DAY, MONTH = "total", "day", "month"
PERIODS = [(TOTAL, "in total"), (DAY, "a day"), (MONTH, "a month")]


class Budget(models.Model):
    """The money that the tasks of a principal, or of all principals of a tenant, may cost. Amounts are millionths of a
    dollar."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, related_name="budgets")
    principal = models.OneToOneField(
        Principal,
        models.CASCADE,
        null=True,
        related_name="budget",
        help_text="A principal of the tenant; null: the budget of all its principals together.",
    )
    amount = models.BigIntegerField(help_text="Millionths of a dollar.")
    period = models.CharField(max_length=8, choices=PERIODS, default=TOTAL)
    reserved = models.BigIntegerField(default=0, db_default=0, help_text="What unfinished tasks may still cost.")
    spent = models.BigIntegerField(default=0, db_default=0, help_text="What tasks that ended in this period have cost.")
    resets_at = models.DateTimeField(null=True, help_text="The end of the period; null for a total.")

    tenant_path: ClassVar = "tenant"

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant"], condition=Q(principal=None), name="budget_of_tenant")
        ]

    def __str__(self) -> str:
        return f"{self.tenant}/{self.principal}" if self.principal else str(self.tenant)


class Reservation(models.Model):
    """The amount that a budget holds for one task. The row is deleted when the task ends."""

    pk = models.CompositePrimaryKey("task_id", "budget_id")
    # Without constraints in the database: the task of a quick agent is stored after its reservation.
    task = models.ForeignKey(Task, models.CASCADE, db_constraint=False, db_index=False, related_name="reservations")
    budget = models.ForeignKey(Budget, models.CASCADE, db_constraint=False, related_name="reservations")
    amount = models.BigIntegerField()
    orphan_at = models.DateTimeField(
        null=True, help_text="When it is given back if there is no such task: the call of a quick agent died."
    )

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["orphan_at"], name="reservation_orphan", condition=Q(orphan_at__isnull=False))
        ]

    def __str__(self) -> str:
        return f"{self.task_id}: {self.amount}"


class DrawnCost(models.Model):
    """The cost of calls of quick agents that drew on an advance. The budget is charged when the advance ends.

    A group of calls inserts rows in place of a change of the budget, for which the groups of all processes would wait.
    """

    # The advance has no row of its own, but a reservation for each budget under its id in place of a task's.
    advance = models.CharField(max_length=36)
    budget = models.ForeignKey(Budget, models.CASCADE, db_constraint=False, db_index=False, related_name="drawn_costs")
    spent = models.BigIntegerField(help_text="Millionths of a dollar.")

    class Meta:
        indexes: ClassVar = [models.Index(fields=["advance"], name="drawn_cost_advance")]

    def __str__(self) -> str:
        return f"{self.advance}: {self.spent}"
