"""The table of refused calls of strangers. Only exchanges/refusals.py writes it."""

from typing import ClassVar

from django.db import models


class Refusals(models.Model):
    """The number of refused calls from one address in one minute, whose callers are not known."""

    minute = models.DateTimeField(help_text="The beginning of the minute.")
    address = models.CharField(
        max_length=64,
        help_text='The address, of IPv6 its network; "others" stands for addresses beyond a number.',
    )
    unauthenticated = models.PositiveIntegerField(default=0, help_text="Calls without a valid credential (401, 403).")
    limited = models.PositiveIntegerField(default=0, help_text="Calls beyond a limit of the address (429).")
    invalid = models.PositiveIntegerField(default=0, help_text="Calls that are refused for what they are (404, 413).")
    recorded = models.PositiveIntegerField(default=0, help_text="The part of all these that has exchanges.")

    class Meta:
        verbose_name = "refusals"
        verbose_name_plural = "refusals"
        constraints: ClassVar = [models.UniqueConstraint(fields=["minute", "address"], name="refusals_of")]
        indexes: ClassVar = [models.Index(fields=["address", "minute"], name="refusals_of_address")]

    def __str__(self) -> str:
        return f"{self.address} at {self.minute:%Y-%m-%d %H:%M}"
