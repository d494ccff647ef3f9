"""Signed cards: the form that is signed, the keys, and everything that must not be believed."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from a2a.canonical import canonical, signed_members
from a2a.dialects import cards_0_3, cards_1_0
from a2a.signatures import ALGORITHMS, BadSignature, UnusableKey, key_set, new_key, read_keys, sign, verify
from tests.wire.values import CARD

JKU = "https://agent.example.com/.well-known/jwks.json"
PEM = new_key()
(KEY,) = read_keys(PEM)
KEYS = key_set((KEY,))
SHAPES = pytest.mark.parametrize("shape", [cards_1_0.encode_card, cards_0_3.encode_card], ids=["1.0", "0.3"])


def wire(value: Any) -> Any:
    """Return the card as it arrives."""
    return orjson.loads(orjson.dumps(value))


def b64(value: bytes | dict[str, Any]) -> str:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()


def header_of(card: dict[str, Any]) -> dict[str, Any]:
    text = card["signatures"][0]["protected"]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))  # type: ignore[no-any-return]


# ---------------------------------------------------------------- the form

SPARSE = {
    "version": "",
    "name": "Prüfer é \U0001f600",
    "description": 'a\u2028"\\\n\u007f',
    "supportedInterfaces": [{"url": "https://x", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": ""}],
    "provider": {},
    "documentationUrl": "",
    "iconUrl": None,
    "capabilities": {
        "streaming": False,
        "pushNotifications": None,
        "extensions": [{"uri": "", "required": False, "params": {"z": 1.0, "a": [], "b": {"": None}, "n": 1e21}}],
    },
    "securitySchemes": {
        "m": {"mtlsSecurityScheme": {}},
        "k": {"apiKeySecurityScheme": {"name": "", "location": "header"}},
        "o": {"oauth2SecurityScheme": {"flows": {"authorizationCode": {"scopes": {}, "pkceRequired": False}}}},
    },
    "securityRequirements": [{"schemes": {"m": {}}}, {"schemes": {"k": {"list": []}}}, {"schemes": {}}],
    "defaultInputModes": [],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "", "name": "", "description": "", "tags": [], "examples": [], "inputModes": []}],
    "signatures": [{"protected": "x", "signature": "y"}],
    "url": "https://evil.example",
    "\ud83d": 1,
}
"""Every rule of presence, and what no rule knows."""
SPARSE_FORM = (
    '{"capabilities":{"extensions":[{"params":{"a":[],"b":{"":null},"n":1e+21,"z":1}}],"streaming":false},'
    '"defaultInputModes":[],"defaultOutputModes":["text/plain"],"description":"a\u2028\\"\\\\\\n\u007f",'
    '"documentationUrl":"","name":"Prüfer é \U0001f600","provider":{},'
    '"securityRequirements":[{"schemes":{"m":{}}},{"schemes":{"k":{}}},{}],'
    '"securitySchemes":{"k":{"apiKeySecurityScheme":{"location":"header","name":""}},"m":{"mtlsSecurityScheme":{}},'
    '"o":{"oauth2SecurityScheme":{"flows":{"authorizationCode":{"scopes":{}}}}}},'
    '"skills":[{"description":"","id":"","name":"","tags":[]}],'
    '"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"https://x"}],"version":""}'
)


def test_the_form_keeps_what_is_required_or_was_set_and_drops_what_is_empty() -> None:
    assert canonical(signed_members(SPARSE)).decode() == SPARSE_FORM


def test_a_foreign_signature_is_believed_and_covers_the_same_bytes() -> None:
    foreign = json.loads(Path(__file__).with_name("foreign_signature.json").read_text(encoding="utf-8"))
    card, keys, form = foreign["card"], foreign["keys"], foreign["form"]
    assert canonical(signed_members(card)).decode() == form
    assert verify(card, keys) == json.loads(form)
    with pytest.raises(BadSignature):
        verify(card | {"version": "2.4.2"}, keys)


def test_names_are_ordered_by_utf_16_and_numbers_are_those_of_ecmascript() -> None:
    value = {"\ue000": 1, "\U0001f600": 2, "b": 0.1, "a": -0.0, "c": 1e-7, "d": 333333333.33333329, "e": 2**53 - 1}
    ordered = '{"a":0,"b":0.1,"c":1e-7,"d":333333333.3333333,"e":9007199254740991,"\U0001f600":2,"\ue000":1}'
    assert canonical(value).decode() == ordered


@SHAPES
def test_nothing_on_our_cards_is_read_in_two_ways(shape: Callable[..., Any]) -> None:
    """Other verifiers drop all that is empty: on a card of ours nothing is."""
    card = shape(CARD)
    cleaned = json.loads(canonical(signed_members(card)))
    assert cleaned == wire(card)
    assert not any(text in canonical(card).decode() for text in ('""', "[]", "{}", "null"))


# ---------------------------------------------------------------- our own


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@SHAPES
@pytest.mark.requirement("ADR-12")
def test_a_signed_card_is_believed_as_it_was_signed(algorithm: str, shape: Callable[..., Any]) -> None:
    (key,) = read_keys(new_key(algorithm))
    card = wire(sign(shape(CARD), key, JKU))
    assert header_of(card) == {"alg": algorithm, "kid": key.kid, "typ": "JOSE", "jku": JKU}
    assert verify(card, wire(key_set((key,)))) == wire(shape(CARD))
    assert set(card["signatures"][0]) == {"protected", "signature"}
    assert not {"=", "+", "/"} & set("".join(card["signatures"][0].values()))


def test_a_signature_of_es256_is_its_two_numbers() -> None:
    text = sign(cards_1_0.encode_card(CARD), KEY, JKU)["signatures"][0]["signature"]
    assert len(base64.urlsafe_b64decode(text + "==")) == 64


@SHAPES
def test_an_altered_card_is_refused(shape: Callable[..., Any]) -> None:
    card = wire(sign(shape(CARD), KEY, JKU))
    for name in shape(CARD):
        changed = card | {name: "x" if card[name] != "x" else "y"}
        with pytest.raises(BadSignature):
            verify(changed, KEYS)
        with pytest.raises(BadSignature):
            verify({other: value for other, value in card.items() if other != name}, KEYS)
    card["skills"][0]["tags"].reverse()
    with pytest.raises(BadSignature):
        verify(card, KEYS)


def test_members_that_no_signature_covers_are_left_out() -> None:
    card = wire(sign(cards_1_0.encode_card(CARD), KEY, JKU))
    card["url"] = "https://evil.example"
    card["supportedInterfaces"][0]["proxy"] = "https://evil.example"
    assert verify(card, KEYS) == wire(cards_1_0.encode_card(CARD))


def test_a_card_of_1_0_cannot_be_passed_for_one_of_0_3() -> None:
    card = wire(sign(cards_1_0.encode_card(CARD), KEY, JKU))
    del card["supportedInterfaces"]
    with pytest.raises(BadSignature):
        verify(card | {"url": "https://evil.example", "protocolVersion": "0.3.0"}, KEYS)


def test_one_good_signature_suffices_and_both_keys_do_after_a_rotation() -> None:
    (new,) = read_keys(new_key("EdDSA"))
    plain = wire(cards_1_0.encode_card(CARD))
    old, fresh = (wire(sign(plain, key, JKU))["signatures"][0] for key in (KEY, new))
    both = wire(key_set(read_keys(new_key("EdDSA") + PEM)))
    assert verify(plain | {"signatures": [fresh, {"protected": "!", "signature": "!"}, old]}, both) == plain
    with pytest.raises(BadSignature):
        verify(plain | {"signatures": [fresh]}, both)
    with pytest.raises(BadSignature):
        verify(plain | {"signatures": [*[fresh] * 16, old]}, KEYS)


# ------------------------------------------------------------ hostile cards


def forged(header: dict[str, Any], make: Callable[[bytes], bytes]) -> dict[str, Any]:
    card = wire(cards_1_0.encode_card(CARD))
    protected = b64(header)
    signed = f"{protected}.{b64(canonical(signed_members(card)))}".encode()
    return card | {"signatures": [{"protected": protected, "signature": b64(make(signed))}]}  # type: ignore[no-any-return]


def genuine(signing_input: bytes) -> bytes:
    from jwt.algorithms import ECAlgorithm

    return ECAlgorithm(ECAlgorithm.SHA256).sign(signing_input, KEY.private)


PUBLIC_PEM = KEY.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def by_secret(secret: bytes) -> Callable[[bytes], bytes]:
    return lambda signing_input: hmac.digest(secret, signing_input, hashlib.sha256)


@pytest.mark.parametrize(
    ("header", "make"),
    [
        ({"alg": "none", "kid": KEY.kid}, lambda _: b""),
        ({"alg": "None", "kid": KEY.kid}, lambda _: b""),
        ({"alg": "HS256", "kid": KEY.kid}, by_secret(PUBLIC_PEM)),
        ({"alg": "HS256", "kid": KEY.kid}, by_secret(json.dumps(KEY.public).encode())),
        ({"alg": "ES256", "kid": KEY.kid}, lambda _: bytes(64)),
        ({"alg": "ES256", "kid": KEY.kid}, lambda _: b""),
        ({"alg": "ES256"}, genuine),
        ({"kid": KEY.kid}, genuine),
        ({"alg": "ES384", "kid": KEY.kid}, genuine),
        ({"alg": "RS256", "kid": KEY.kid}, genuine),
        ({"alg": ["ES256"], "kid": KEY.kid}, genuine),
        ({"alg": "ES256", "kid": [KEY.kid]}, genuine),
        ({"alg": "ES256", "kid": "another"}, genuine),
        ({"alg": "ES256", "kid": "another", "jwk": KEY.public}, genuine),
        ({"alg": "ES256", "kid": KEY.kid, "crit": ["exp"], "exp": 1}, genuine),
        ({"alg": "ES256", "kid": KEY.kid, "crit": [], "b64": False}, genuine),
        ({"alg": "ES256", "kid": KEY.kid, "b64": False, "crit": ["b64"]}, genuine),
    ],
)
def test_a_forged_signature_is_refused(header: dict[str, Any], make: Callable[[bytes], bytes]) -> None:
    with pytest.raises(BadSignature):
        verify(forged(header, make), KEYS)


def test_the_forger_of_these_tests_can_make_a_good_one() -> None:
    assert verify(forged({"alg": "ES256", "kid": KEY.kid}, genuine), KEYS)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"keys": []},
        {"keys": [None, 5, "x", {}]},
        {"keys": [KEY.public | {"use": "enc"}]},
        {"keys": [KEY.public | {"alg": "RS256"}]},
        {"keys": [KEY.public | {"x": "!"}]},
        {"keys": [KEY.public | {"y": KEY.public["x"]}]},
        {"keys": [{"kty": "oct", "kid": KEY.kid, "k": b64(b"secret")}]},
        {"keys": [{name: value for name, value in KEY.public.items() if name != "kid"}]},
    ],
)
def test_only_a_fitting_key_is_taken(keys: dict[str, Any]) -> None:
    with pytest.raises(BadSignature):
        verify(wire(sign(cards_1_0.encode_card(CARD), KEY, JKU)), keys)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "signatures",
    [
        None,
        [],
        {},
        "x",
        [None],
        ["x"],
        [5],
        [{}],
        [{"protected": 5, "signature": 5}],
        [{"protected": "a.b", "signature": "c"}],
        [{"protected": "\ud800", "signature": "é"}],
        [{"protected": b64(b"[]"), "signature": ""}],
        [{"protected": b64(b"["), "signature": ""}],
        [{"protected": "A" * 1_000_000, "signature": ""}],
        [{"protected": "e30", "signature": None}] * 1_000,
    ],
)
def test_odd_signatures_are_refused(signatures: Any) -> None:
    with pytest.raises(BadSignature):
        verify(wire(cards_1_0.encode_card(CARD)) | {"signatures": signatures}, KEYS)


@pytest.mark.parametrize(
    "odd",
    [{"skills": nested(5_000)}, {"skills": 2**60}, {"skills": ["\ud800"]}, {"capabilities": [{}]}],
    ids=["deep", "a number too large", "half a character", "a list"],
)
def test_odd_cards_are_refused(odd: dict[str, Any]) -> None:
    card = wire(sign(cards_1_0.encode_card(CARD), KEY, JKU))
    with pytest.raises(BadSignature):
        verify(card | odd, KEYS)


# -------------------------------------------------------------------- keys


def test_the_name_of_a_key_is_its_thumbprint() -> None:
    pem = ec.derive_private_key(1, ec.SECP256R1()).private_bytes(
        Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
    )
    (key,) = read_keys(pem.decode())
    bare = '{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}' % (key.public["x"], key.public["y"])  # noqa: UP031  # braces
    assert key.kid == b64(hashlib.sha256(bare.encode()).digest())
    assert set(key.public) == {"kty", "crv", "x", "y", "use", "alg", "kid"}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nothing_private_is_published(algorithm: str) -> None:
    public = key_set(read_keys(new_key(algorithm)))["keys"][0]
    assert not {"d", "p", "q", "dp", "dq", "qi", "k"} & set(public)


def test_several_keys_stay_in_order_and_the_same_one_counts_once() -> None:
    other = new_key()
    keys = read_keys(f"a note\n{PEM}\n{other}\n{PEM}")
    assert [key.kid for key in keys] == [KEY.kid, read_keys(other)[0].kid]
    assert read_keys("") == read_keys(" \n") == ()


def pem_of(private: Any, password: bytes = b"") -> str:
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    return str(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode())


PARAMETERS = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"


@pytest.mark.parametrize(
    ("pem", "said"),
    [
        ("hunter2", "whole PEM blocks"),
        (PEM[:-20], "whole PEM blocks"),
        (PEM + PEM[:60], "whole PEM blocks"),
        (PEM[10:], "whole PEM blocks"),
        (PEM.replace("M", "*", 1), "PEM block 1 cannot be read"),
        ("-----BEGIN PRIVATE KEY-----\n\n-----END PRIVATE KEY-----", "PEM block 1 cannot be read"),
        (PEM + PUBLIC_PEM.decode(), "PEM block 2 is a PUBLIC KEY"),
        (PARAMETERS, "no private key"),
        (pem_of(KEY.private, b"hunter2"), "PEM block 1 is encrypted"),
        (pem_of(ec.generate_private_key(ec.SECP384R1())), "must be a key on P-256"),
        (pem_of(rsa.generate_private_key(public_exponent=65537, key_size=1024)), "RSA with 2048 bits at least"),  # noqa: S505  # refused
    ],
)
def test_an_unusable_key_is_named_by_its_place_and_never_shown(pem: str, said: str) -> None:
    with pytest.raises(UnusableKey, match=said) as raised:
        read_keys(pem)
    assert not [line for line in pem.splitlines() if line and "-----" not in line and line in str(raised.value)]


def test_parameters_before_a_key_do_no_harm() -> None:
    assert [key.kid for key in read_keys(PARAMETERS + PEM)] == [KEY.kid]
