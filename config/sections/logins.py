"""Logins of operators."""

from config.environment import flag, number, whole
from config.sections.process import DEVELOPMENT

A2A_LOGIN_TRIES = whole("A2A_LOGIN_TRIES", 5, 1)
"""Wrong logins as one user of the admin before a lock: 30 s, then twice as long each time, 15 minutes at most. An
address has four times as many."""
A2A_SESSION_HOURS = number("A2A_SESSION_HOURS", 12, 0.01, 876_000)
"""The longest time of a login to the admin."""
A2A_SESSION_IDLE_MINUTES = number("A2A_SESSION_IDLE_MINUTES", 60, 0.1, 525_600)
"""The time without a request after which a login to the admin ends."""
A2A_PROOF_MINUTES = number("A2A_PROOF_MINUTES", 15, 0, 525_600)
"""The time after a login in which an operator may give rights: make operators, roles, tokens and keys, and approve
OAuth clients. After that the admin asks for the password and the second factor again. 0: never."""
A2A_SECOND_FACTOR = flag("A2A_SECOND_FACTOR", not DEVELOPMENT)
"""A second factor of operators: a code of an app, at every login to the admin, and to make a token. Switched off in
production, `check --deploy` warns."""
