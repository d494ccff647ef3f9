"""The table of operators' wrong logins. Only logins.py writes it."""

from typing import ClassVar

from django.db import models


class WrongLogins(models.Model):
    """The count of wrong logins as one user or from one address, and the wait that follows from it."""

    KINDS: ClassVar = [("user", "user"), ("address", "address")]

    kind = models.CharField(max_length=8, choices=KINDS)
    value = models.CharField(max_length=150, help_text="The user's name, or the address; of IPv6 its network.")
    running = models.PositiveIntegerField(default=0, help_text="Wrong logins since the last right login.")
    total = models.PositiveIntegerField(default=0, help_text="Wrong logins in all.")
    refused = models.PositiveIntegerField(default=0, help_text="Logins during a lock, whose password was not read.")
    locked_until = models.DateTimeField(null=True)
    began_at = models.DateTimeField(help_text="The time of the first wrong login.")
    last_at = models.DateTimeField(help_text="The time of the newest login.")
    last_with = models.CharField(max_length=150, default="", help_text="The address of the newest login, or its user.")
    right_at = models.DateTimeField(null=True, help_text="The time of the newest right login after wrong ones.")

    class Meta:
        verbose_name = "wrong logins"
        verbose_name_plural = "wrong logins"
        constraints: ClassVar = [models.UniqueConstraint(fields=["kind", "value"], name="wrong_logins_of")]
        indexes: ClassVar = [models.Index(fields=["last_at"], name="wrong_logins_age")]

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"
