"""The tables of webhooks, their deliveries, and the attempts at each delivery."""

from collections.abc import Collection
from typing import ClassVar

from django.db import models
from django.db.models import Q

from a2a.notices import names_of
from tasks_app.models.states import DeliveryState, WebhookState

LANGUAGE = "case when {0}version = '' then {0}language else 'a2a-' || {0}version end"
"""The name of the language in SQL, as language_of() returns it; the columns may have a prefix."""


def language_of(version: str, language: str | None) -> str:
    """Return the name of a language. Of A2A the version tells it: a process of the version before writes that alone."""
    return f"a2a-{version}" if version else language or ""


def is_in(languages: Collection[str]) -> Q:
    """Return the condition of rows in one of these languages, as language_of() names them."""
    versions = [name.removeprefix("a2a-") for name in languages if name.startswith("a2a-")]
    return Q(version__in=versions) | Q(version="", language__in=languages)


class Webhook(models.Model):
    """A webhook of a task, with its lease: one delivery is under way at a time, the oldest that waits."""

    STATES: ClassVar = [(state.value, state.value) for state in WebhookState]

    id = models.CharField(max_length=36, primary_key=True)
    task = models.ForeignKey("Task", models.CASCADE, db_constraint=False, db_index=False, related_name="webhooks")
    name = models.CharField(
        max_length=255, db_column="config_id", help_text="The id that its owner uses; unique in the task."
    )
    version = models.CharField(max_length=8, help_text="The A2A version of its deliveries; empty in another language.")
    language = models.CharField(
        max_length=32, null=True, help_text="The language of its deliveries; null: it follows from the version."
    )
    notices = models.SmallIntegerField(
        null=True, help_text="The filter of its deliveries, a bit for each notice; null: all events."
    )
    url = models.TextField(help_text="Scheme and host; of a row that is not sealed yet, the whole address.")
    address = models.TextField(null=True, help_text="Sealed: the whole address.")
    key = models.ForeignKey(
        "ApiKey",
        models.SET_NULL,
        null=True,
        db_constraint=False,
        db_index=False,
        related_name="webhooks",
        help_text="The key that registered it. Without this key no delivery is sent.",
    )
    caller_credential = models.CharField(
        max_length=32,
        null=True,
        help_text="The credential that registered it, such as oidc:3. When it ends, no delivery is sent.",
    )
    evidence_at = models.DateTimeField(
        null=True, help_text="The time at which the token of the registration was issued; without a token, its time."
    )
    host = models.CharField(max_length=255, help_text="The host of the address, for the limit of attempts at a host.")
    schemes = models.TextField(default="", help_text="Separated by spaces; the first is used.")
    token = models.TextField(default="", help_text="Sealed.")
    credentials = models.TextField(default="", help_text="Sealed.")
    secret = models.TextField(default="", help_text="Sealed: what deliveries are signed with.")
    state = models.CharField(max_length=16, choices=STATES, default=WebhookState.ACTIVE.value)
    reason = models.CharField(max_length=255, default="", help_text="Why it is not active.")
    due_at = models.DateTimeField(null=True, help_text="When a waiting delivery is tried next.")
    rests_until = models.DateTimeField(
        null=True, help_text="Interim deliveries wait until then, or until the task has grown enough."
    )
    grown = models.BigIntegerField(
        default=0, db_default=0, help_text="Bytes of the task's events since its last whole body."
    )
    body_bytes = models.BigIntegerField(default=0, db_default=0, help_text="The size of that body.")
    sent_bytes = models.BigIntegerField(
        default=0, db_default=0, help_text="The size of all bodies that were sent to it."
    )
    lease_owner = models.CharField(max_length=64, null=True, help_text="The delivery attempt under way.")
    lease_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    tenant_path: ClassVar = "task__tenant"
    agent_path: ClassVar = "task__agent"

    class Meta:
        db_table = "tasks_app_pushconfig"  # Processes of the version before write to it.
        constraints: ClassVar = [models.UniqueConstraint(fields=["task", "name"], name="push_config_id")]
        indexes: ClassVar = [
            models.Index(fields=["due_at"], name="push_config_due", condition=Q(due_at__isnull=False)),
            models.Index(fields=["key"], name="push_config_key", condition=Q(key__isnull=False)),
            models.Index(fields=["host", "id"], name="push_config_host"),
            models.Index(fields=["id"], name="push_config_clear", condition=Q(address__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.task_id}"

    @property
    def language_name(self) -> str:
        """The name of the language."""
        return language_of(self.version, self.language)

    @property
    def notice_names(self) -> list[str]:
        """The names of the notices that it gets."""
        return names_of(self.notices)


class Delivery(models.Model):
    """One event for one webhook. Each attempt makes the same body from the event log."""

    STATES: ClassVar = [(state.value, state.value) for state in DeliveryState]

    id = models.CharField(max_length=36, primary_key=True, help_text="Every attempt sends it as webhook-id.")
    webhook = models.ForeignKey(
        Webhook,
        models.CASCADE,
        db_column="config_id",
        db_constraint=False,
        db_index=False,
        related_name="deliveries",
    )
    task = models.ForeignKey("Task", models.CASCADE, db_constraint=False, db_index=False, related_name="deliveries")
    seq = models.PositiveIntegerField(help_text="The sequence number of the event.")
    version = models.CharField(max_length=8, help_text="The A2A version of the body; empty in another language.")
    language = models.CharField(
        max_length=32, null=True, help_text="The language of the body; null: it follows from the version."
    )
    body = models.TextField(
        null=True, help_text="The body of a row from before bodies were made from the log; else null."
    )
    interim = models.BooleanField(
        default=False, db_default=False, help_text="A later delivery of the webhook says all that it says."
    )
    state = models.CharField(max_length=16, choices=STATES, default=DeliveryState.WAITING.value)
    attempt = models.PositiveIntegerField(default=0, db_column="tries", help_text="How many times it was tried.")
    status = models.PositiveSmallIntegerField(null=True, help_text="The HTTP status of the last answer.")
    error = models.CharField(max_length=255, default="", help_text="The error of the last attempt.")
    created_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True)

    tenant_path: ClassVar = "task__tenant"
    agent_path: ClassVar = "task__agent"

    class Meta:
        verbose_name_plural = "deliveries"
        constraints: ClassVar = [models.UniqueConstraint(fields=["webhook", "seq"], name="delivery_of_event")]
        indexes: ClassVar = [
            models.Index(fields=["task", "seq"], name="delivery_task"),
            models.Index(
                fields=["webhook", "seq"], name="delivery_waiting", condition=Q(state=DeliveryState.WAITING.value)
            ),
            models.Index(
                fields=["state", "id"], name="delivery_state", condition=~Q(state=DeliveryState.DELIVERED.value)
            ),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def language_name(self) -> str:
        """The name of the language."""
        return language_of(self.version, self.language)


class DeliveryTry(models.Model):
    """One attempt at a delivery: a POST, or the reason why it could not be made."""

    delivery = models.ForeignKey(Delivery, models.CASCADE, db_constraint=False, db_index=False, related_name="log")
    attempt = models.PositiveIntegerField(db_column="number", help_text="Counted from 1.")
    at = models.DateTimeField()
    status = models.PositiveSmallIntegerField(null=True, help_text="HTTP; null: there was no answer.")
    error = models.CharField(max_length=255, default="")
    duration_ms = models.PositiveIntegerField()

    class Meta:
        verbose_name = "delivery attempt"
        verbose_name_plural = "delivery attempts"
        indexes: ClassVar = [models.Index(fields=["delivery", "id"], name="delivery_tries")]

    def __str__(self) -> str:
        return f"{self.delivery_id} attempt {self.attempt}"
