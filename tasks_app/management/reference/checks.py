"""The page of checks, generated from the docstrings in tasks_app/checks."""

import ast
import inspect
import re

from tasks_app import checks
from tasks_app.management.reference.markdown import code, page, sentence, table

INTRODUCTION = """
`manage.py check` finds misconfigurations. An error (E) keeps a server or a worker from starting, a warning (W) does
not. `manage.py check --deploy` adds Django's checks for a deployment. A production is a server with `SECRET_KEY`.
"""
ROW = re.compile(r"^(a2a\.[EW]\d+): (.+?)(?=^a2a\.|\Z)", re.MULTILINE | re.DOTALL)


def make() -> str:
    """Return the page."""
    nodes = [node for module in checks.MODULES for node in ast.parse(inspect.getsource(module)).body]
    docstrings = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, ast.FunctionDef)]
    texts = {id: sentence(text) for docstring in docstrings for id, text in ROW.findall(docstring)}
    rows = [(code(id), text[:1].upper() + text[1:]) for id, text in sorted(texts.items())]
    return page("Checks", INTRODUCTION, table(("Check", "What is wrong"), rows))
