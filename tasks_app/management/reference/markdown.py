"""Markdown for the reference pages."""

from collections.abc import Iterable, Sequence

FIRST_LINE = "<!-- Made by `manage.py a2a reference --write`: change the code, not this page. -->"


def page(title: str, introduction: str, *sections: str) -> str:
    """Return a page."""
    return "\n\n".join([FIRST_LINE, f"# {title}", introduction.strip(), *sections]) + "\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(_cell(text) for text in line)} |" for line in lines)


def code(text: str) -> str:
    """Return the text as code, or nothing for an empty one."""
    return f"`{text}`" if text else ""


def sentence(docstring: str | None) -> str:
    """Return a docstring in one line."""
    return " ".join((docstring or "").split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
