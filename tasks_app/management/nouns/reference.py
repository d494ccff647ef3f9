"""`manage.py a2a reference`: the pages of docs/reference, generated from the code."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from tasks_app.management.arguments import read_text
from tasks_app.management.nouns import Noun, Printer


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "page", type=read_text, nargs="?", default="", help="the page to print, such as settings; all by default"
    )
    parser.add_argument("--write", action="store_true", help="write the pages to docs/reference instead")


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    from tasks_app.management.reference import PAGES  # loads every command

    if options["page"] not in {"", *PAGES}:
        raise CommandError(f"There is no page {options['page']!r}. The pages are {', '.join(PAGES)}.")
    folder = Path(settings.PROJECT) / "docs" / "reference"
    for name, make in PAGES.items():
        if options["page"] not in ("", name):
            continue
        if options["write"]:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.md").write_text(make(), encoding="utf-8")
        else:
            printer.stdout.write(make(), ending="")


REFERENCE = Noun(
    help="print the pages of docs/reference, or write them",
    add_arguments=_add_arguments,
    handle=_handle,
    needs_database=False,
)
