"""The end of operators' sessions: a fixed time after the login, and sooner for a session without visits."""

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

from tasks_app import clock

VISIT_SECONDS = 60.0
"""Seconds between two recorded visits of a session. Recording every page would write a row for each."""


class Visits(MiddlewareMixin):
    """Middleware that ends a session A2A_SESSION_HOURS after login, or A2A_SESSION_IDLE_MINUTES after its last page."""

    def process_request(self, request: HttpRequest) -> None:
        """End the session if its time is over, else record the visit."""
        if settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return  # Reading the session would add "Vary: Cookie" to every answer.
        session = request.session
        if SESSION_KEY not in session:
            return
        now, idle = clock.now().timestamp(), settings.A2A_SESSION_IDLE_MINUTES * 60
        began, last = float(session.get("began", now)), float(session.get("seen", now))
        if now - began > settings.A2A_SESSION_HOURS * 3600 or now - last > idle:
            session.flush()
        elif "began" not in session or now - last >= min(VISIT_SECONDS, idle / 10):
            session["began"], session["seen"] = began, now
