"""Misconfigurations that Django's check framework reports, with ids.

The lines that begin with an id in a check's docstring are its rows in docs/reference/checks.md. Importing a module
registers its checks.
"""

from tasks_app.checks import agents, brokers, cards, production, stores, variables

MODULES = (agents, brokers, cards, production, stores, variables)
"""The modules that have checks."""
