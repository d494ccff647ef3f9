"""Django's admin as an application. Its pages are imported with the URLs, so that other commands start fast."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks


class AdminConfig(SimpleAdminConfig):
    """The admin with our site, and with checks that import its pages first."""

    default_site = "tasks_app.operators.site.Site"

    def ready(self) -> None:
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(check_pages, checks.Tags.admin)


def check_pages(**options: Any) -> list[checks.CheckMessage]:
    """Import every page of the admin, then check them."""
    admin.autodiscover()
    return list(check_admin_app(**options))
