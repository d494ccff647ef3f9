"""The second factor of operators: one-time codes of an app (RFC 6238) and recovery codes, kept by django-otp.

A session is verified by a code, and stays so while the device that gave the code exists. The key of a new device is in
the session until its first code confirms it, so that only the person who confirms it has seen it. Keys are stored
sealed, there and in the table of devices, and recovery codes as digests.
"""

import base64
import hmac
import io
import logging
import secrets
from collections.abc import Iterable
from typing import Any

import segno
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice

from tasks_app.models import OperatorDevice
from tasks_app.models.operators import decoy
from tasks_app.operators.approvals import end_approvals
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.operators.tokens import revoke_all
from tasks_app.sealing import Unreadable, seal

log = logging.getLogger(__name__)
RECOVERY_CODES = 10
"""Recovery codes of an operator. Each works once."""
KEY_BYTES = 20
"""Bytes of a key; RFC 4226, 4 recommends 160 bits."""
_DIGEST = 16
"""Characters of a digest of a recovery code, the width of django-otp's column."""


def is_satisfied(user: Any) -> bool:
    """Return whether the session of a user needs no code any more. The user must come from a request."""
    return not settings.A2A_SECOND_FACTOR or bool(user.is_verified())


def has_device(user: User) -> bool:
    """Return whether a user has enrolled."""
    return bool(TOTPDevice.objects.filter(user=user, confirmed=True).exists())


def find_holders(ids: Iterable[int]) -> set[int]:
    """Return those of the users, given by their ids, who have enrolled."""
    devices = TOTPDevice.objects.filter(user__in=ids, confirmed=True)
    return set(devices.values_list("user_id", flat=True))


def new_key() -> str:
    """Return a random key of a device, in hexadecimal digits."""
    return secrets.token_hex(KEY_BYTES)


def spell_key(key: str) -> str:
    """Return a key as people type it into an app."""
    return base64.b32encode(bytes.fromhex(key)).decode()


def draw_key(user: User, key: str) -> str:
    """Return a QR code with a key, as an SVG element without styles and scripts, as the policy of pages asks."""
    device = TOTPDevice(user=user, key=key)
    image = io.BytesIO()
    segno.make(device.config_url, error="m").save(
        image, kind="svg", scale=5, light="#ffffff", xmldecl=False, svgns=True, nl=False
    )
    return image.getvalue().decode()


def enrol(user: User, key: str, code: str, by: Operator) -> tuple[Any, list[str]] | None:
    """Give a user without a device the one with this key, if the code is of it. Return the device and the recovery
    codes, which cannot be read again; None for a wrong code."""
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        if has_device(user):
            return None
        device = OperatorDevice.objects.create(user=user, name="app", key=decoy(), sealed_key=seal(key), confirmed=True)
        if not device.verify_token(code):
            device.delete()
            return None
        codes = [secrets.token_hex(5) for _ in range(RECOVERY_CODES)]
        StaticDevice.objects.filter(user=user).delete()
        recovery = StaticDevice.objects.create(user=user, name="recovery codes", confirmed=True)
        for each in codes:
            recovery.token_set.create(token=_digest(each, settings.SECRET_KEY))
        record_acts(by, "enrol", Change(user))
    return device, codes


def verify(user: User, code: str) -> Any:
    """Return the device of a user that a code is of; None for a wrong code. A code works once.

    django-otp makes the next try wait after a wrong code, twice as long each time, even with a right one.
    """
    plain = "".join(code.split()).lower()
    is_recovery = not (len(plain) == 6 and plain.isascii() and plain.isdigit())
    with transaction.atomic():
        seal_keys(user)
        devices = (StaticDevice if is_recovery else OperatorDevice).objects.filter(user=user, confirmed=True)
        for device in devices.select_for_update():
            if _is_of(device, _find_digest(device, plain) if is_recovery else plain):
                return device
    return None


def _is_of(device: Any, code: str) -> bool:
    """Return whether a code is of a device. A device whose key cannot be read has none."""
    try:
        return bool(device.verify_token(code))
    except Unreadable:
        log.error(
            "the key of %s was sealed under a former SECRET_KEY: add that one to SECRET_KEY_FALLBACKS, or reset the "
            "second factor with `manage.py a2a users reset-second-factor`",
            device,
        )
        return False


def seal_keys(user: User) -> None:
    """Seal the keys of devices that the version before has enrolled since the migration."""
    for device in TOTPDevice.objects.select_for_update(of=("self",)).filter(user=user, operatordevice=None):
        sealed = OperatorDevice(totpdevice_ptr=device, sealed_key=seal(device.key))
        sealed.__dict__ |= {field.attname: getattr(device, field.attname) for field in device._meta.concrete_fields}
        sealed.key = decoy()
        sealed.save()


def reset(user: User, by: Operator) -> None:
    """Remove the devices and the tokens of a user, who enrols again at the next page. Sessions need a code at once.

    The approvals of OAuth clients end too: a person who had the lost device may have given them.
    """
    with transaction.atomic():
        rows = TOTPDevice.objects.filter(user=user)
        devices = rows.count()
        rows.delete()
        StaticDevice.objects.filter(user=user).delete()
        end_approvals(user)
        record_acts(by, "reset second factor", Change(user, {}, {"devices": devices, "tokens": revoke_all(user)}))


def _find_digest(device: Any, code: str) -> str:
    """Return the digest under which a recovery code is stored, which a former SECRET_KEY may have made."""
    digests = [_digest(code, secret) for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)]
    stored: str | None = device.token_set.filter(token__in=digests).values_list("token", flat=True).first()
    return stored or digests[0]


def _digest(code: str, secret: str) -> str:
    return hmac.digest(secret.encode(), code.encode(), "sha256").hex()[:_DIGEST]
