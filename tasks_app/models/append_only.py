"""Tables whose rows are only added: see docs/decisions/audit.md."""

from typing import Any, NoReturn, TypeVar

from django.db import models

M = TypeVar("M", bound=models.Model)


class AppendOnly(models.QuerySet[M]):
    """Rows that can be added, but not changed or deleted. The database refuses the same to other programs."""

    def update(self, **values: Any) -> NoReturn:
        raise TypeError(f"{self.model._meta.verbose_name_plural} are not changed")

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"{self.model._meta.verbose_name_plural} are not changed")

    def delete(self) -> NoReturn:
        raise TypeError(f"{self.model._meta.verbose_name_plural} are not deleted, except by their age")
