"""A row of every table for a tenant, in which each text of people has the tenant's mark."""

from typing import Any

from django.apps import apps
from django.contrib.auth.models import User
from django.db import models
from django.db.models.fields import NOT_PROVIDED

from tasks_app.ids import uuid7
from tasks_app.models import ApiKey, Exchange, Principal, Task, Tenant, Webhook
from tests.support.operators import NOW, exchange, task


class Furniture:
    """The rows of a tenant, by their models."""

    def __init__(self, tenant: str, mark: str, *, agent: str = "echo") -> None:
        self.mark = mark
        home = Tenant.objects.create(name=tenant)
        owner = Principal.objects.create(tenant=home, name=f"{mark}-owner")
        self.rows: dict[type[models.Model], Any] = {Tenant: home, Principal: owner}
        self.rows[Task] = task(owner, words=f"{mark} words", agent=agent, context_id=f"{mark}-context")
        body = f'{{"x": "{mark} body"}}'
        task_id = self.rows[Task].pk
        self.rows[Exchange] = exchange(owner, body, task_id=task_id, rpc_id=f"{mark}-rpc", method=f"{mark}Method")
        for model in self.tables():
            if model not in self.rows:
                self.rows[model] = self.make(model)

    @staticmethod
    def tables() -> list[type[models.Model]]:
        """Return the tables whose rows belong to a tenant; those that others refer to come first."""
        tables = [model for model in apps.get_app_config("tasks_app").get_models() if getattr(model, "tenant_path", "")]
        first = [ApiKey, Webhook]
        return [*first, *(model for model in tables if model not in first)]

    def make(self, model: type[models.Model]) -> Any:
        """Return a new row of a table."""
        fields = [field for field in model._meta.concrete_fields if not isinstance(field, models.AutoField)]
        return model._default_manager.create(**{field.name: self.value(field) for field in fields})

    def value(self, field: Any) -> Any:
        """Return a value of a column."""
        if isinstance(field, models.ForeignKey):
            kind = field.related_model
            if kind is User:
                return User.objects.create_user(f"{self.mark}-{uuid7()}")
            return self.rows.get(kind) or (None if field.null else self.rows.setdefault(kind, self.make(kind)))
        if field.name == "tenant_id":  # a number, in tables whose rows outlive their tenant
            return self.rows[Tenant].pk
        if field.primary_key:
            return uuid7()
        if field.name in DOCUMENTS or (field.choices and field.default is NOT_PROVIDED and not field.null):
            return DOCUMENTS[field.name] % self.mark if field.name in DOCUMENTS else field.choices[0][0]
        if isinstance(field, models.CharField | models.TextField) and not field.choices and field.name not in JSON:
            if field.name in SEALED:
                return None if field.null else ""
            return (f"{self.mark}-{uuid7()}" if field.unique else self.mark)[: field.max_length]
        if field.default is not NOT_PROVIDED:
            return field.get_default()
        if field.null:
            return None
        return NOW if isinstance(field, models.DateTimeField) else 1


DOCUMENTS = {
    "parts": '[{"text": "%s"}]',
    "metadata": '{"topic": "%s"}',
    "agent_types": '["%s"]',
    "configuration": '{"topic": "%s"}',
    "artifacts": '[{"text": "%s"}]',
}
"""Columns with JSON in which the texts of people are members."""
JSON = frozenset({"before", "after"})
SEALED = frozenset({"address", "token", "credentials", "secret", "body"})
"""Columns whose values are not of people, and must have another form."""
