"""The scheme of mutual TLS: certificates of clients, which a trusted proxy has verified and passes on in a header.

The header is looked at only in requests that a proxy of A2A_TRUSTED_PROXIES sent itself. Any other peer could make it
up, as certificates are public.
"""

import hashlib
import re
from base64 import b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from cryptography import x509
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from msgspec import Struct

from a2a.errors import InvalidKey
from a2a.types import SecurityScheme
from tasks_app import clock
from tasks_app.callers.pages import is_of_other_page
from tasks_app.callers.peers import comes_from_proxy
from tasks_app.callers.schemes import Evidence, Scheme
from tasks_app.callers.service_accounts import CERTIFICATE, FindAccount

NAME = "mtls"
LONGEST = 16_384
MOST_NAMES = 16
_UNREADABLE = (
    *(ValueError, Base64Error, x509.InvalidVersion, x509.ExtensionNotFound, x509.DuplicateExtension),
    x509.UnsupportedGeneralNameType,
)
"""The errors that reading a malformed certificate raises."""
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----\s*")
# A value without quotes keeps its trailing spaces: to backtrack over them would take the square of their number.
_ELEMENT = re.compile(r'\s*([A-Za-z]+)=("(?:[^"\\]|\\.)*"|[^;,"]*+)\s*([;,]|$)')


class Certificate(Struct, frozen=True):
    """A certificate as a proxy passes it on."""

    thumbprint: str
    """Its SHA-256 hash in hexadecimal."""
    names: tuple[str, ...]
    """The names that its account may be registered under, the most specific first."""
    begins: datetime | None = None
    ends: datetime | None = None


def header_in(meta: Mapping[str, Any]) -> str:
    """Return the header with the certificate of the client; empty without one, and from a peer that is no proxy."""
    name = settings.A2A_CLIENT_CERT_HEADER
    value = str(meta.get(f"HTTP_{name.upper().replace('-', '_')}", ""))
    return value.strip() if value and comes_from_proxy(meta) else ""


def bound_thumbprint(meta: Mapping[str, Any]) -> str:
    """Return the thumbprint of the client's certificate in the form of `x5t#S256` (RFC 8705, 3.1); empty without a
    certificate that can be read."""
    header = header_in(meta)
    if not header:
        return ""
    try:
        thumbprint = read_certificate(header).thumbprint
    except InvalidKey:
        return ""
    return urlsafe_b64encode(bytes.fromhex(thumbprint)).rstrip(b"=").decode()


async def prove(evidence: Evidence) -> FindAccount:
    """Return the work item that finds the account of a certificate. Raises InvalidKey."""
    certificate = read_certificate(str(evidence.secret))
    now = clock.now()
    if (certificate.begins and now < certificate.begins) or (certificate.ends and now >= certificate.ends):
        raise InvalidKey
    ends = certificate.ends.timestamp() if certificate.ends else None
    return FindAccount(CERTIFICATE, certificate.names, expires_at=ends)


def read_certificate(header: str) -> Certificate:
    """Return the certificate in a header, in the form that A2A_CLIENT_CERT_HEADER has. Raises InvalidKey."""
    if len(header) > LONGEST:
        raise InvalidKey
    try:
        return _FORMS[settings.A2A_CLIENT_CERT_HEADER.lower()](header)
    except _UNREADABLE:
        raise InvalidKey from None


def _of_bytes(data: bytes) -> Certificate:
    certificate = x509.load_der_x509_certificate(data)
    thumbprint = hashlib.sha256(data).hexdigest()
    return Certificate(
        thumbprint,
        (f"sha256:{thumbprint}", *_names(certificate))[:MOST_NAMES],
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc,
    )


def _names(certificate: x509.Certificate) -> Iterator[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = None
    if names is not None:
        yield from (f"uri:{value}" for value in names.get_values_for_type(x509.UniformResourceIdentifier))
        yield from (f"dns:{value}" for value in names.get_values_for_type(x509.DNSName))
        yield from (f"email:{value}" for value in names.get_values_for_type(x509.RFC822Name))
    if subject := certificate.subject.rfc4514_string():
        yield f"dn:{subject}"


def _of_structured_field(header: str) -> Certificate:
    """Return the certificate of `Client-Cert`, which is bytes between colons (RFC 9440, 2.2)."""
    if len(header) < 2 or header[0] != ":" or header[-1] != ":":
        raise InvalidKey
    return _of_bytes(b64decode(header[1:-1], validate=True))


def _of_pem(header: str) -> Certificate:
    """Return the certificate of `X-SSL-Client-Cert`, which is PEM with %XX for line breaks, as nginx escapes it."""
    match = _PEM.fullmatch(unquote(header).strip())
    if match is None:
        raise InvalidKey
    return _of_bytes(b64decode("".join(match[1].split()), validate=True))


def _of_elements(header: str) -> Certificate:
    """Return the certificate of `X-Forwarded-Client-Cert`, as Envoy writes it: the last one, which the nearest proxy
    has added. Without the certificate itself its fields count."""
    fields: list[tuple[str, str]] = []
    place = 0
    while place < len(header):
        match = _ELEMENT.match(header, place)
        if match is None:
            raise InvalidKey
        value = match[2]
        fields.append((match[1].lower(), value[1:-1].replace('\\"', '"') if value.startswith('"') else value))
        place = match.end()
        if match[3] == "," and place < len(header):
            fields = []
    if pem := next((value for name, value in fields if name == "cert"), ""):
        return _of_pem(pem)
    thumbprint = next((value.lower() for name, value in fields if name == "hash"), "")
    if not re.fullmatch("[0-9a-f]{64}", thumbprint):
        raise InvalidKey
    names = [f"{name}:{value}" for kind in ("uri", "dns") for name, value in fields if name == kind and value]
    subjects = [f"dn:{value}" for name, value in fields if name == "subject" and value]
    return Certificate(thumbprint, (f"sha256:{thumbprint}", *names, *subjects)[:MOST_NAMES])


_FORMS: dict[str, Callable[[str], Certificate]] = {
    "client-cert": _of_structured_field,
    "x-ssl-client-cert": _of_pem,
    "x-forwarded-client-cert": _of_elements,
}
"""The forms of a certificate in a header, by the name of the header."""


def _read(meta: Mapping[str, Any]) -> Evidence | None:
    header = header_in(meta)
    # A browser shows its user's certificate to every page that asks, as it does with cookies.
    return Evidence(NAME, header) if header and not is_of_other_page(meta) else None


def _cards() -> dict[str, SecurityScheme]:
    if not settings.A2A_TRUSTED_PROXIES:
        raise ImproperlyConfigured(f"A2A_SCHEMES has {NAME}, but A2A_TRUSTED_PROXIES is empty")
    return {NAME: SecurityScheme(mutual_tls=True, description="A certificate of the client in TLS")}


SCHEME = Scheme(
    name=NAME,
    method="mtls",
    cards=_cards,
    credential="a client certificate in TLS",
    substitute="TLS-Client-Certificate",
    read=_read,
    prove=prove,
)
