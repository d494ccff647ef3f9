"""The cards of remote agents on our cards, and the end of remote tasks that nobody waits for."""

from typing import Any

import msgspec
import orjson
import pytest

from a2a.agents import registry
from a2a.dialects.cards_1_0 import encode_card
from a2a.requests import SendMessage
from a2a.types import Card, Message, Role, Skill
from tasks_app.callers.access import Caller
from tasks_app.cards import public
from tasks_app.models import Relay
from tasks_app.operations import Context
from tasks_app.operations.choose_agent import choose_agent
from tasks_app.relays import cards
from tasks_app.relays.options import RelayOptions, relays
from tasks_app.relays.registration import agent_of
from tasks_app.upkeep.relays import relay_routine
from tests.conftest import Server
from tests.relays.conftest import AddRelay

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("lanes")]
ADDRESS = "http://testserver"


@pytest.fixture
def far(settings: Any, add_relay: AddRelay, server: Server) -> str:
    """Give a relay to an agent with two skills, which the settings name."""
    url = f"{server.url}/agents/singer/"
    name = add_relay(url)
    settings.A2A_RELAYS = {name: {"url": url}}
    cards._current.clear()
    return name


def skills_on_card(name: str) -> tuple[list[str], str]:
    page = public.public_card(name, ADDRESS, encode_card, whole=False)
    assert page
    return [skill["id"] for skill in orjson.loads(page.body)["skills"]], page.etag


def test_the_skills_of_the_remote_agent_come_onto_our_card(far: str) -> None:
    before = skills_on_card(far)
    assert before[0] == [far]
    relay_routine.run_round()
    skills, etag = skills_on_card(far)
    assert skills == ["sing"]
    assert etag != before[1]
    agent = registry.get(far)
    assert agent
    assert agent.description == "Has a skill that only some callers are shown."
    assert registry.with_skill("sing") is not None


def test_a_remote_skill_attracts_no_call_of_an_agent_here(far: str) -> None:
    skills = tuple(Skill(id=one, name=one, description=one, tags=(one,)) for one in ("replies", "far"))
    card = Card(name="x", description="d", version="1", interfaces=(), skills=skills)
    # Agents are in the order of their names, and that of the relay is before "replies".
    cards._describe(relays()[0], msgspec.json.encode(cards.description_of(card)).decode())
    assert {agent.name for agent in registry if any(skill.id == "replies" for skill in agent.skills)} == {
        far,
        "replies",
    }

    def chosen(skill: str) -> str:
        caller = Caller(tenant_id=1, tenant="t", owner_id=1, name="n", scopes=frozenset(), rules=())
        message = Message(message_id="m", role=Role.USER, parts=())
        request = SendMessage(message=message, metadata={"skill": skill})
        return choose_agent(request, Context(caller=caller)).name

    assert (chosen("replies"), chosen("far")) == ("replies", far)


def test_a_stored_card_is_shown_while_the_remote_agent_is_away(far: str, settings: Any) -> None:
    relay_routine.run_round()
    (relay,) = relays()
    registry.add(agent_of(relay, {}))
    cards._current.clear()
    settings.A2A_OUTBOUND_LOOPBACK = False
    relay_routine.run_round()
    assert skills_on_card(far)[0] == ["sing"]


def test_a_card_that_cannot_be_read_is_a_problem_for_operators_and_for_nobody_else(far: str, settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = False
    relay_routine.run_round()
    row = Relay.objects.get()
    assert "must begin with https://" in row.problem
    assert skills_on_card(far)[0] == [far]
    settings.A2A_OUTBOUND_LOOPBACK = True
    relay_routine.run_round()
    assert Relay.objects.get().problem, "it is not due yet"
    Relay.objects.update(due_at=None)
    relay_routine.run_round()
    assert Relay.objects.get().problem == ""


def test_the_card_of_another_address_is_forgotten(far: str, settings: Any, server: Server) -> None:
    relay_routine.run_round()
    settings.A2A_RELAYS = {far: {"url": f"{server.url}/agents/replies/"}}
    relay_routine.run_round()
    assert skills_on_card(far)[0] == ["replies"]


def test_a_hostile_card_is_cut_to_bounds() -> None:
    skills = tuple(
        Skill(id=f"{number}", name="n" * 999, description="d" * 9_999, tags=("t" * 999,)) for number in range(500)
    )
    card = Card(
        name="x",
        description="d" * 99_999,
        version="",
        interfaces=(),
        skills=(*skills, skills[0]),
        input_modes=("text", "TEXT", "text/plain"),
    )
    stored = cards.description_of(card)
    assert (len(stored.description), len(stored.skills), stored.version) == (2_000, 100, "1.0.0")
    assert {len(skill.name) for skill in stored.skills} == {200}
    assert stored.input_modes == ("text/plain",)
    assert agent_of(RelayOptions(name="far", url="https://far.example"), {"skills": stored.skills}).name == "far"
