"""The choice of the version, and of a card's shape (docs/protocol.md#choosing-the-version, #cards)."""

import pytest

from a2a.card_choice import CardFile, Form, card_encoder, hybrid_card
from a2a.dialects import cards_0_3, cards_1_0, v0_2, v0_3, v1_0
from a2a.language import Dialect
from tests.protocol.speaking import BY_VERSION, choose, refused, wire
from tests.wire.values import CARD

NEW, OLD, OLDEST = (BY_VERSION[version] for version in ("1.0", "0.3", "0.2"))
PASCAL = sorted(NEW.methods)
SLASH = sorted(OLDEST.methods)
EXTENDED = "agent/getAuthenticatedExtendedCard"
ODD = [
    *("2.0", "0.1", "0.4", "0.5", "1.1", "1.10", "10.0", "00.3", "01.0", "1.00", "3.0", "0.30"),
    *(
        "1",
        "v1.0",
        "1.",
        ".1",
        "1.0.",
        "1.0.x",
        "1.0.0.0",
        "1,0",
        "1.0, 0.3",
        " 1.0",
        "1.0 ",
        "1.0\n",
        "latest",
    ),
    *("-1.0", "1.-0", "\u0661.\u0660", "1.0\0", "\0", " "),
]


def form(path: CardFile, version: str | None) -> Form:
    chosen = card_encoder(path, version)
    assert chosen
    return chosen


def test_the_names_of_the_generations_never_overlap() -> None:
    assert not set(PASCAL) & set(SLASH)
    assert set(OLD.methods) == {*SLASH, EXTENDED}
    assert (len(PASCAL), len(SLASH)) == (11, 10)


@pytest.mark.parametrize("version", [None, "", "0.3", "0.3.0", "0.3.7"])
@pytest.mark.parametrize("method", [*SLASH, EXTENDED])
def test_a_slash_method_is_0_3(method: str, version: str | None) -> None:
    assert choose(method, version) == (v0_3.DIALECT, v0_3.DIALECT.methods[method])


@pytest.mark.parametrize("version", ["0.2", "0.2.6", "0.2.9"])
@pytest.mark.parametrize("method", SLASH)
def test_a_slash_method_with_an_old_header_is_0_2(method: str, version: str) -> None:
    assert choose(method, version) == (v0_2.DIALECT, v0_2.DIALECT.methods[method])


@pytest.mark.parametrize("version", [None, "", "1.0", "1.0.0", "1.0.1"])
@pytest.mark.parametrize("method", PASCAL)
def test_a_pascal_case_method_is_1_0(method: str, version: str | None) -> None:
    assert choose(method, version) == (v1_0.DIALECT, v1_0.DIALECT.methods[method])


@pytest.mark.parametrize("version", ["1.0", "1.0.1"])
@pytest.mark.parametrize("method", [*SLASH, EXTENDED])
def test_a_slash_method_does_not_exist_in_1_0(method: str, version: str) -> None:
    refusal = refused(method, version)
    assert refusal.language is NEW
    said = wire(refusal)
    reason = "it is a method of a2a-0.3, and by its A2A-Version this call is in a2a-1.0"
    assert (said["code"], said["message"]) == (-32601, f"Method not found: {reason}")
    assert said["data"][0]["metadata"] == {"detail": reason}


@pytest.mark.parametrize(("version", "dialect"), [("0.3", OLD), ("0.3.0", OLD), ("0.2", OLDEST), ("0.2.9", OLDEST)])
@pytest.mark.parametrize("method", PASCAL)
def test_a_pascal_case_method_does_not_exist_in_0_x(method: str, version: str, dialect: Dialect) -> None:
    refusal = refused(method, version)
    assert refusal.language is dialect
    said = wire(refusal)
    reason = f"it is a method of a2a-1.0, and by its A2A-Version this call is in {dialect.name}"
    assert (said["code"], said["message"]) == (-32601, f"Method not found: {reason}")
    assert said["data"]["detail"] == reason


def test_the_extended_card_is_no_method_of_0_2() -> None:
    refusal = refused(EXTENDED, "0.2")
    assert refusal.language is OLDEST
    assert wire(refusal)["code"] == -32601


@pytest.mark.parametrize("version", [None, ""])
@pytest.mark.parametrize("method", ["nope", "tasks/nope", "Nope", "sendMessage", "SENDMESSAGE", ""])
def test_an_unknown_method_without_a_header_is_refused_in_neutral_words(method: str, version: str | None) -> None:
    refusal = refused(method, version)
    assert refusal.language is None
    detail = "it is spelled SendMessage" if method.casefold() == "sendmessage" else "rpc.discover lists the methods"
    assert wire(refusal) == {"code": -32601, "message": f"Method not found: {detail}"}


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("SendMesage", "SendMessage"),
        ("sendmesage", "SendMessage"),
        ("SendMessages", "SendMessage"),
        ("SedmMessage", "SendMessage"),
        ("SubscribeTask", "SubscribeToTask"),
        ("message/send ", "message/send"),
        ("task/get", "tasks/get"),
        ("get_taskk", "get_task"),
    ],
)
def test_an_unknown_method_is_refused_with_the_nearest_name(method: str, name: str) -> None:
    assert refused(method, None).error.facts == {"detail": f"did you mean {name}? rpc.discover lists the methods"}


def test_a_version_gives_only_names_of_its_own_methods() -> None:
    assert refused("SendMesage", "0.3").error.facts == {"detail": "rpc.discover lists the methods"}
    assert refused("message/sen", "0.3").error.facts["detail"].startswith("did you mean message/send? ")


@pytest.mark.parametrize(("version", "dialect"), [("1.0", NEW), ("0.3", OLD), ("0.2", OLDEST)])
def test_an_unknown_method_is_refused_in_the_words_of_its_version(version: str, dialect: object) -> None:
    refusal = refused("tasks/nope", version)
    assert refusal.language is dialect
    told = wire(refusal)
    assert (told["code"], told["message"]) == (-32601, "Method not found: rpc.discover lists the methods")


@pytest.mark.parametrize("version", ODD)
@pytest.mark.parametrize("method", ["SendMessage", "message/send", "nope"])
def test_another_version_is_refused_in_the_words_of_1_0(method: str, version: str) -> None:
    refusal = refused(method, version)
    assert refusal.language is NEW
    said = wire(refusal)
    sentence = "Version not supported: the A2A-Version must be 0.2, 0.3 or 1.0 here, not "
    assert (said["code"], said["message"].partition(", not ")[0] + ", not ") == (-32009, sentence)
    assert said["data"][0]["reason"] == "VERSION_NOT_SUPPORTED"
    assert said["data"][0]["metadata"]["supportedVersions"] == "0.2,0.3,1.0"


@pytest.mark.parametrize("version", ["9" * 100, "1.0." + "0" * 100, "1.0" + " " * 30])
def test_a_long_version_is_cut(version: str) -> None:
    assert refused("SendMessage", version).error.facts["requestedVersion"] == version[:32]


def test_a_version_is_cleaned_of_what_cannot_be_stored() -> None:
    assert refused("SendMessage", "1\0.\udce90\n").error.facts["requestedVersion"] == "1.0"


@pytest.mark.parametrize("version", [None, "", "0.2", "0.3", "1.0", "2.0", "odd"])
@pytest.mark.requirement("SPARC-01")
def test_the_old_path_shows_the_0_2_card(version: str | None) -> None:
    assert form("agent.json", version)[0](CARD)["protocolVersion"] == "0.2.9"


@pytest.mark.parametrize(
    ("version", "shape"),
    [
        ("1.0", cards_1_0.encode_card),
        ("1.0.1", cards_1_0.encode_card),
        ("1.7", cards_1_0.encode_card),
        ("0.3", cards_0_3.encode_card),
        ("0.3.0", cards_0_3.encode_card),
        ("0.2.9", v0_2.encode_card),
        (None, hybrid_card),
        ("", hybrid_card),
        ("2.0", hybrid_card),
        ("0.5", hybrid_card),
        ("odd", hybrid_card),
    ],
)
def test_the_new_path_shows_what_the_header_asks_for(version: str | None, shape: object) -> None:
    assert form("agent-card.json", version)[0] is shape


def test_the_hybrid_only_adds_to_the_1_0_card() -> None:
    hybrid, pure, old = hybrid_card(CARD), cards_1_0.encode_card(CARD), cards_0_3.encode_card(CARD)
    assert {name: hybrid[name] for name in pure if name != "securitySchemes"} == {
        name: pure[name] for name in pure if name != "securitySchemes"
    }
    assert set(hybrid) - set(pure) == {
        "url",
        "preferredTransport",
        "additionalInterfaces",
        "protocolVersion",
        "security",
        "supportsAuthenticatedExtendedCard",
    }
    # Clients of 0.3 that send no version find out from this card how to authenticate.
    for name, scheme in hybrid["securitySchemes"].items():
        assert scheme == pure["securitySchemes"][name] | old["securitySchemes"][name]


def test_the_pin_of_a_key_decides_where_no_version_is_named() -> None:
    assert choose("message/send", None, "a2a-0.2")[0] is OLDEST
    assert choose("message/send", "0.3", "a2a-0.2")[0] is OLD
    assert choose("SendMessage", None, "a2a-0.2")[0] is NEW, "it has no such method"


@pytest.mark.parametrize("method", ["get_result", "execute", "rpc.list", "tasks.make"])
def test_every_family_of_methods_says_where_its_methods_are_listed(method: str) -> None:
    assert refused(method, None).error.facts == {"detail": "rpc.discover lists the methods"}
