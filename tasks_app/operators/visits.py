"""Sessions of operators end: some time after the login, and sooner when nothing is done."""

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

from tasks_app import clock

GRAIN = 60.0
"""Seconds after which a further visit is written down: not each page writes a row."""


class Visits(MiddlewareMixin):
    """Ends a session A2A_SESSION_HOURS after its login, and A2A_SESSION_IDLE_MINUTES after its last page."""

    def process_request(self, request: HttpRequest) -> None:
        """Forget who asks when the session is over, and note the visit."""
        if settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return  # To look at the session would make each answer vary with the cookie.
        session = request.session
        if SESSION_KEY not in session:
            return
        now, idle = clock.now().timestamp(), settings.A2A_SESSION_IDLE_MINUTES * 60
        began, seen = float(session.get("began", now)), float(session.get("seen", now))
        if now - began > settings.A2A_SESSION_HOURS * 3600 or now - seen > idle:
            session.flush()
        elif "began" not in session or now - seen >= min(GRAIN, idle / 10):
            session["began"], session["seen"] = began, now
