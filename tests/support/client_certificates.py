"""Certificates of clients, in the forms in which proxies pass them on."""

import hashlib
from base64 import b64encode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from functools import cache
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

DNS, URI, COMMON_NAME = "robot.example.com", "spiffe://example.com/robot", "robot"


@cache
def certificate(days: float = 30, name: str = COMMON_NAME) -> x509.Certificate:
    """Return a certificate that ends after so many days."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=60)).not_valid_after(now + timedelta(days=days))
    names = x509.SubjectAlternativeName([x509.DNSName(DNS), x509.UniformResourceIdentifier(URI)])
    return builder.add_extension(names, critical=False).sign(key, SHA256())


def der(days: float = 30, name: str = COMMON_NAME) -> bytes:
    return certificate(days, name).public_bytes(Encoding.DER)


def thumbprint() -> str:
    return hashlib.sha256(der()).hexdigest()


def x5t() -> str:
    """Return the thumbprint as a token has it (RFC 8705, 3.1)."""
    return urlsafe_b64encode(hashlib.sha256(der()).digest()).decode().rstrip("=")


def client_cert(days: float = 30, name: str = COMMON_NAME) -> str:
    """Return the value of Client-Cert (RFC 9440, 2.2)."""
    return f":{b64encode(der(days, name)).decode()}:"


def escaped_pem() -> str:
    """Return the value of X-SSL-Client-Cert, as nginx writes it."""
    return quote(certificate(30, COMMON_NAME).public_bytes(Encoding.PEM).decode())
