"""The second factor of operators in tests: apps, their codes and recovery codes."""

import re

from django.test import Client
from django_otp.oath import totp
from django_otp.plugins.otp_totp.models import TOTPDevice

from tasks_app.sealing import unseal

PAGE = "/admin/second-factor/"


def code_of(key: str, later: int = 0) -> str:
    """Return the code of a key, now or some steps of 30 s later; the server accepts one step."""
    return f"{totp(bytes.fromhex(key), drift=later):06d}"


def enrolled(client: Client) -> tuple[str, list[str]]:
    """Enrol the user of the client; return the key and the recovery codes."""
    client.get(PAGE)
    key = unseal(client.session["second_factor_key"])
    text = client.post(PAGE, {"code": code_of(key)}).content.decode()
    return key, re.findall(r'<li class="td-mono">([0-9a-f]{10})</li>', text)


def forget_wrong_codes() -> None:
    """End the wait after wrong codes, which a test must not sleep through."""
    TOTPDevice.objects.update(throttling_failure_timestamp=None, throttling_failure_count=0)
