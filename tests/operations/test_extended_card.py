"""The card for callers who are known: what they may use, and no more."""

from typing import Any

import pytest

from a2a.agents import define, registry
from a2a.answers import CardAnswer
from a2a.definitions import AgentDefinitionError
from a2a.dialects import cards_0_3, cards_1_0
from a2a.errors import ExtendedCardNotConfigured, MissingScope, TaskNotFound, UnknownAgent
from a2a.requests import GetExtendedCard
from a2a.signatures import key_set, new_key, read_keys, verify
from a2a.types import Skill
from tasks_app.cards import public as cards
from tests.conftest import Person, person
from tests.operations.asking import ask
from tests.support.cached_cards import forget_cards
from tests.transports.cards.pages import urls

pytestmark = pytest.mark.django_db

ADDRESS = "http://localhost"
PEM = new_key()


@pytest.fixture
def reader(db: None) -> Person:
    """May read and write, and nothing that agents ask for besides."""
    return person("reader", "home", "tasks:read tasks:write")


@pytest.fixture
def crew(db: None) -> Person:
    return person("crew", "home", "tasks:read crew")


def extended(who: Person, agent: str | None = None, **more: Any) -> CardAnswer:
    found = ask(who, GetExtendedCard(address=ADDRESS, **more), agent=agent)
    assert isinstance(found, CardAnswer)
    return found


def skills(who: Person, agent: str | None = None) -> set[str]:
    return {skill.id for skill in extended(who, agent).card.skills}


def test_it_shows_each_caller_what_their_scopes_allow(owner: Person, reader: Person, crew: Person) -> None:
    assert {"echo", "scoped", "backstage", "whisper"} <= skills(owner)
    assert {"echo", "sing", "whisper"} <= skills(reader)
    assert not {"scoped", "backstage"} & skills(reader)
    assert "backstage" in skills(crew)
    assert "scoped" not in skills(crew)


@pytest.mark.parametrize("who", ["owner", "colleague", "stranger"])
def test_each_caller_with_a_key_has_an_extended_card(request: pytest.FixtureRequest, who: str) -> None:
    assert "echo" in skills(request.getfixturevalue(who))


def test_an_agent_has_one_of_its_own_for_those_who_have_its_scopes(owner: Person, reader: Person, crew: Person) -> None:
    assert skills(crew, "backstage") == {"backstage"}
    assert skills(reader, "singer") == {"sing", "whisper"}
    with pytest.raises(MissingScope) as told:
        extended(reader, "backstage")
    assert told.value.facts["required"] == "crew"
    with pytest.raises(UnknownAgent):
        extended(owner, "nobody")


def test_its_addresses_are_those_it_was_asked_at(owner: Person) -> None:
    assert urls(cards_1_0.encode_card(extended(owner).card)) == {f"{ADDRESS}/jsonrpc"}
    assert urls(cards_1_0.encode_card(extended(owner, "story").card)) == {f"{ADDRESS}/agents/story/jsonrpc"}


def test_without_an_address_of_the_server_there_is_none(owner: Person) -> None:
    with pytest.raises(ExtendedCardNotConfigured) as told:
        ask(owner, GetExtendedCard())
    assert "A2A_PUBLIC_URL" in told.value.facts["detail"]


def test_another_tenant_is_not_found(owner: Person) -> None:
    assert extended(owner, tenant="home")
    with pytest.raises(TaskNotFound):
        extended(owner, tenant="abroad")


@pytest.mark.parametrize("shape", [cards_1_0.encode_card, cards_0_3.encode_card], ids=["1.0", "0.3"])
def test_it_is_signed_as_it_is_for_this_caller(settings: Any, owner: Person, reader: Person, shape: Any) -> None:
    assert extended(owner).sign({"name": "x"}) == {"name": "x"}
    settings.A2A_CARD_KEY = PEM
    keys = key_set(read_keys(PEM))
    for who in (owner, reader):
        answer = extended(who)
        assert len(verify(answer.sign(shape(answer.card)), keys)["skills"]) == len(answer.card.skills)
    assert extended(owner).sign(shape(extended(owner).card)) != extended(reader).sign(shape(extended(reader).card))


def test_it_is_not_signed_for_an_address_that_may_be_made_up(settings: Any, owner: Person) -> None:
    settings.A2A_CARD_KEY = PEM
    answer = ask(owner, GetExtendedCard(address="http://made-up.example"))
    assert "signatures" not in answer.sign(cards_1_0.encode_card(answer.card))


def test_the_public_card_stays_as_it_is(reader: Person) -> None:
    forget_cards()
    page = cards.public_card("echo", ADDRESS, cards_1_0.encode_card, whole=True)
    assert page
    extended(reader)
    assert cards.public_card("echo", ADDRESS, cards_1_0.encode_card, whole=True) == page
    forget_cards()


# --------------------------------------------------------- what is declared


async def quiet(run: Any) -> str:
    """Says nothing."""
    return ""


def test_a_card_never_lacks_what_it_must_say() -> None:
    (skill,) = define(quiet, {"skills": [Skill(id="to-rest", name="", description="", tags=())]}).skills
    assert (skill.name, skill.description, skill.tags) == ("To rest", "Says nothing.", ("quiet",))


def test_a_listed_agent_lists_a_skill() -> None:
    hidden = Skill(id="s", name="S", description="d", tags=("t",), listed=False)
    with pytest.raises(AgentDefinitionError, match="set listed=False"):
        define(quiet, {"skills": [hidden]})
    assert define(quiet, {"skills": [hidden], "listed": False}).listed is False


@pytest.mark.parametrize("value", ["no", 0, None])
def test_listed_is_true_or_false(value: Any) -> None:
    with pytest.raises(AgentDefinitionError, match="listed= must be True or False"):
        define(quiet, {"listed": value})


def test_shipped_agents_are_listed() -> None:
    assert all(agent.listed for agent in registry if agent.function.__module__ == "tasks_app.agents.examples")
