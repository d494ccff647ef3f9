"""TLS for tests: certificates that vouch for themselves, and a front that ends TLS before a server of plain HTTP."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def certificate(name: str, folder: Path, *, days: float = 1) -> Path:
    """Return a key and a certificate of that name, which ends after so many days, in one file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


def server_context(file: Path) -> ssl.SSLContext:
    """Return the context of a server with a key and a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@asynccontextmanager
async def tls_front(file: Path, port: int) -> AsyncIterator[int]:
    """Give a port with TLS whose bytes go to and from another port of this machine."""

    async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await source.read(65_536):
                target.write(piece)
                await target.drain()
        target.close()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, own = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pass_on(reader, own), pass_on(theirs, writer))

    server = await asyncio.start_server(take, "127.0.0.1", 0, ssl=server_context(file))
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
