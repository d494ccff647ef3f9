"""Signed cards: keys, signatures (JWS, RFC 7515) and their verification (A2A 1.0, 8.4; docs/protocol.md#signatures)."""

import hashlib
import re
from collections.abc import Collection, Iterator
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from jwt import PyJWK
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from jwt.api_jws import PyJWS
from jwt.exceptions import PyJWTError
from jwt.utils import base64url_encode
from msgspec import Struct

from a2a.canonical import canonical, payloads, readings
from a2a.envelopes.body import MAX_DEPTH, deeper_than
from a2a.types import Json

ALGORITHMS = {"ES256": ("EC", "P-256"), "RS256": ("RSA", None), "EdDSA": ("OKP", "Ed25519")}
"""The algorithms for signing and verifying, with type and curve of the key. `none` and shared secrets are excluded."""
RSA_BITS = 2048
"""The smallest size of an RSA key."""
MAX_SIGNATURES = 16
"""The most signatures of one card that are verified."""
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)
_JWS = PyJWS(algorithms=list(ALGORITHMS), options={"enforce_minimum_key_length": True})


class UnusableKey(Exception):
    """A key that cannot sign. The message gives the reason, and no part of the key."""


class BadSignature(Exception):
    """A card without a valid signature. The message gives the reason."""


class CardKey(Struct, frozen=True, kw_only=True):
    """A key that signs cards."""

    private: Any
    """The private key, as a value of the library `cryptography`."""
    algorithm: str
    public: Json
    """The public JWK, whose kid is the thumbprint (RFC 7638)."""

    @property
    def kid(self) -> str:
        """The id of the key."""
        return str(self.public["kid"])


# -------------------------------------------------------------------- keys


def new_key(algorithm: str = "ES256") -> str:
    """Return a new private key as PEM."""
    private: Any = {
        "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
        "RS256": lambda: rsa.generate_private_key(public_exponent=65537, key_size=3072),
        "EdDSA": ed25519.Ed25519PrivateKey.generate,
    }[algorithm]()
    pem: bytes = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem.decode()


def read_keys(pem: str) -> tuple[CardKey, ...]:
    """Return the keys of all PEM blocks, in order, without duplicates. Raises UnusableKey."""
    keys: dict[str, CardKey] = {}
    blocks = list(_BLOCK.finditer(pem))
    if pem.strip() and len(blocks) != max(1, pem.count("-----BEGIN")):
        raise UnusableKey("it must be whole PEM blocks, -----BEGIN PRIVATE KEY----- to -----END PRIVATE KEY-----")
    for number, block in enumerate(blocks, 1):
        if block[1] == "EC PARAMETERS":
            continue  # openssl writes this block before a key in its older format.
        if not block[1].endswith("PRIVATE KEY"):
            raise UnusableKey(f"PEM block {number} is a {block[1]}, not a PRIVATE KEY")
        key = _read_key(block[0], number)
        keys.setdefault(key.kid, key)
    if pem.strip() and not keys:
        raise UnusableKey("there is no private key in it")
    return tuple(keys.values())


def _read_key(pem: str, number: int) -> CardKey:
    try:
        private = load_pem_private_key(pem.encode(), None)
    except TypeError:
        raise UnusableKey(f"PEM block {number} is encrypted: give the key without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):
        raise UnusableKey(f"PEM block {number} cannot be read as a private key") from None
    match private:
        case ec.EllipticCurvePrivateKey() if isinstance(private.curve, ec.SECP256R1):
            return _card_key(private, "ES256", ECAlgorithm.to_jwk(private.public_key(), as_dict=True))
        case rsa.RSAPrivateKey() if private.key_size >= RSA_BITS:
            return _card_key(private, "RS256", RSAAlgorithm.to_jwk(private.public_key(), as_dict=True))
        case ed25519.Ed25519PrivateKey():
            return _card_key(private, "EdDSA", OKPAlgorithm.to_jwk(private.public_key(), as_dict=True))
    raise UnusableKey(f"PEM block {number} must be a key on P-256, on Ed25519, or of RSA with {RSA_BITS} bits at least")


def _card_key(private: Any, algorithm: str, jwk: Json) -> CardKey:
    bare: Json = {name: jwk[name] for name in ("kty", "crv", "x", "y", "n", "e") if name in jwk}
    # RFC 7638 hashes exactly the required members. Its canonical form is that of RFC 8785 for these values.
    kid = base64url_encode(hashlib.sha256(canonical(bare)).digest()).decode()
    return CardKey(private=private, algorithm=algorithm, public=bare | {"use": "sig", "alg": algorithm, "kid": kid})


def key_set(keys: tuple[CardKey, ...]) -> Json:
    """Return the public keys as a JWK Set (RFC 7517)."""
    return {"keys": [key.public for key in keys]}


# -------------------------------------------------------------- signatures


def signature(payload: bytes, key: CardKey, jku: str) -> Json:
    """Return an AgentCardSignature of the payload (A2A 1.0, 4.4.7). `jku` is the absolute URL of the key set."""
    headers = {"alg": key.algorithm, "kid": key.kid, "typ": "JOSE", "jku": jku}
    token = _JWS.encode(payload, key.private, algorithm=key.algorithm, headers=headers)
    header, _, value = token.split(".")
    return {"protected": header, "signature": value}


def sign(card: Json, key: CardKey, jku: str) -> Json:
    """Return an encoded card of 1.0, of 0.3 or of both with its signatures."""
    return card | {"signatures": [signature(payload, key, jku) for payload in payloads(card)]}


def verify(card: Json, keys: Json, algorithms: Collection[str] = tuple(ALGORITHMS)) -> Json:
    """Return the members of the card that a valid signature covers. Use no others. Raises BadSignature.

    `keys` is a JWK Set that the caller trusts, and `algorithms` names those of ALGORITHMS that may be used. The URL in
    a signature's header is never fetched (docs/protocol.md#signatures).
    """
    if deeper_than(card, MAX_DEPTH):
        raise BadSignature(f"the card is nested deeper than {MAX_DEPTH} levels")
    signatures = card.get("signatures")
    if not isinstance(signatures, list) or not signatures:
        raise BadSignature("the card has no signatures")
    try:
        forms = [(reading, base64url_encode(canonical(reading)).decode()) for reading in readings(card)]
    except ValueError as error:
        raise BadSignature(f"the card has no canonical form: {error}") from None
    for entry in signatures[:MAX_SIGNATURES]:
        for key in _keys_for(entry, keys, algorithms):
            for reading, payload in forms:
                if _is_valid(f"{entry['protected']}.{payload}.{entry['signature']}", key):
                    return reading
    raise BadSignature("no signature of the card was made with one of these keys for what the card says")


def _keys_for(entry: Any, keys: Json, algorithms: Collection[str]) -> Iterator[PyJWK]:
    """Yield the keys with the kid and the algorithm of the protected header, if that algorithm is allowed."""
    try:
        header = _JWS.get_unverified_header(f"{entry['protected']}..{entry['signature']}")
        algorithm, kid = header["alg"], header["kid"]
        kind, curve = ALGORITHMS[algorithm]
    except (PyJWTError, KeyError, TypeError, ValueError):
        return
    if algorithm not in algorithms:
        return
    listed = keys.get("keys")
    for jwk in (item for item in (listed if isinstance(listed, list) else []) if isinstance(item, dict)):
        fits = jwk.get("kid") == kid and jwk.get("kty") == kind and jwk.get("crv") == curve
        if fits and jwk.get("use", "sig") == "sig" and jwk.get("alg", algorithm) == algorithm:
            try:
                yield PyJWK.from_dict(jwk, algorithm)
            except (PyJWTError, ValueError, TypeError):
                continue


def _is_valid(token: str, key: PyJWK) -> bool:
    """Return whether the key made the signature of the token."""
    try:
        _JWS.decode_complete(token, key, algorithms=list(ALGORITHMS))
    except (PyJWTError, ValueError):
        return False
    return True
