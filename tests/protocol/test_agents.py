"""@agent: what a definition gives, and its mistakes, named with file and line."""

import functools
import inspect
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, get_type_hints

import pytest

from a2a.agents import Registry, agent, define
from a2a.cards import describe
from a2a.definitions import AgentDefinitionError
from a2a.mistakes import AgentMistake
from a2a.options import OPTIONS, Options
from a2a.run import Run
from a2a.types import Extension, Message, Role, Skill
from tests.conftest import ROOT
from tests.support.servers import COMMAND_SECONDS


async def good(run: Run) -> str:
    """Does something.

    This paragraph is left out of the skill's description.
    """
    return run.text


def told(function: Any, **options: Any) -> str:
    """Return the sentence of the mistake, without its place, which must be that of the function."""
    with pytest.raises(AgentDefinitionError) as raised:
        define(function, options)
    place, sentence = re.fullmatch(r'(.+\.py:\d+): agent "[^"]*": (.+)', str(raised.value), re.DOTALL).groups()  # type: ignore[union-attr]
    code = function.__code__
    assert place == f"{code.co_filename}:{code.co_firstlineno}"
    assert place.startswith(__file__)
    return str(sentence)


def test_name_description_and_skill_come_from_the_function() -> None:
    found = define(good, {})
    assert (found.name, found.description) == ("good", "Does something.")
    assert [(skill.id, skill.name, skill.tags) for skill in found.skills] == [("good", "Good", ("good",))]
    assert (found.timeout, found.attempts, found.quick, found.queue) == (300.0, 1, False, "default")
    assert found.schema is None


def test_options_overrule_the_function() -> None:
    skill = Skill(id="s", name="S", description="d", tags=("t",))
    found = define(good, {"name": "better", "description": "More.", "skills": ["to-greet", skill], "timeout": 5})
    assert (found.name, found.description, found.timeout) == ("better", "More.", 5)
    assert [known.name for known in found.skills] == ["To greet", "S"]


def test_an_underscore_becomes_a_hyphen() -> None:
    async def Say_Hello(run: Run) -> None:  # noqa: N802
        """Says hello."""

    assert define(Say_Hello, {}).name == "say-hello"


def test_the_form_is_found_behind_decorators() -> None:
    async def stream(run: Run) -> AsyncIterator[str]:
        """Streams."""
        yield ""

    def steps(run: Run) -> Iterator[str]:
        """Steps."""
        yield ""

    def plain(run: Run) -> None:
        """Plain."""

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(run: Run) -> Any:
            return function(run)

        return wrapper

    forms = {function: define(function, {}).form for function in (good, stream, steps, plain)}
    assert list(forms.values()) == ["coroutine", "async generator", "generator", "function"]
    assert [define(wrapped(function), {}).form for function in forms] == list(forms.values())


def test_parameters_make_the_inputs_and_their_schema() -> None:
    def weather(run: Run, city: str, days: int = 1) -> None:
        """Tells the weather."""

    schema = define(weather, {}).schema
    assert schema
    (shape,) = schema["$defs"].values()
    assert (shape["required"], sorted(shape["properties"]), shape["additionalProperties"]) == (
        ["city"],
        ["city", "days"],
        False,
    )


def test_an_agent_in_a_process_of_its_own_takes_a_thread_whatever_its_form() -> None:
    found = define(good, {"isolation": "process", "memory": 500_000_000})
    assert (found.form, found.is_async, found.memory) == ("coroutine", False, 500_000_000)
    assert define(good, {}).is_async


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize("quick", [True, bool])
def test_a_quick_agent_has_no_process_of_its_own(quick: Any) -> None:
    assert told(good, quick=quick, isolation="process") == (
        "quick agents run inside the call: leave quick= or isolation= out"
    )


class Judge:
    """An object whose call is async."""

    async def __call__(self, message: Message) -> bool:
        return True


async def judges(message: Message) -> bool:
    """Decides too late."""
    return True


def test_a_function_that_decides_whether_an_agent_is_quick_is_plain() -> None:
    sentence = 'quick= must be a plain function, which answers at once: "def" without a yield'
    for quick in (judges, functools.partial(judges), Judge()):
        assert told(good, quick=quick) == sentence


@pytest.mark.parametrize(
    "quick",
    [lambda: True, lambda message, more: True, lambda *, message: True],
    ids=["no parameter", "two parameters", "a parameter by name"],
)
def test_a_function_that_decides_whether_an_agent_is_quick_takes_the_message(quick: Any) -> None:
    assert told(good, quick=quick) == "quick= must be a function of one parameter, the message"


def test_a_function_of_python_itself_may_decide_whether_an_agent_is_quick() -> None:
    assert define(good, {"quick": bool}).quick is bool


def test_a_function_of_quick_that_raises_is_named_with_its_line() -> None:
    def fails(message: Message) -> bool:
        raise KeyError("city")

    quick, line = define(good, {"quick": fails}), fails.__code__.co_firstlineno + 1
    with pytest.raises(AgentMistake) as raised:
        quick.is_quick(Message(message_id="m", role=Role.USER, parts=()))
    assert str(raised.value) == f"{__file__}:{line}: agent \"good\": the function of quick= raised KeyError: 'city'"


def test_a_function_of_quick_that_returns_something_to_await_is_refused() -> None:
    """A coroutine is true, whatever it would return."""
    quick = define(good, {"quick": lambda message: judges(message)})  # noqa: PLW0108  # it hides that it is async
    with pytest.raises(
        AgentMistake, match=r"the function of quick= returned something to await: return True or False$"
    ):
        quick.is_quick(Message(message_id="m", role=Role.USER, parts=()))


def test_a_limit_of_memory_needs_a_process() -> None:
    assert told(good, memory=500_000_000) == 'memory= is the limit of a process: it needs isolation="process"'


def test_a_misspelt_option_is_answered_with_the_right_one() -> None:
    assert told(good, timout=5) == "there is no option timout=; did you mean timeout=?"
    assert told(good, colour="red").startswith("there is no option colour=; there are name, description")
    assert told(good, coast=0.5) == "there is no option coast=; did you mean cost=?"


WRONG: dict[str, list[Any]] = {
    "name": ["Has Space", ""],
    "description": [" "],
    "skills": [
        "greet",
        [1],
        [""],
        ["greet", "greet"],
        ["greet", Skill(id="greet", name="G", description="d", tags=("t",))],
        [Skill(id="", name="G", description="d", tags=("t",))],
    ],
    "isolation": ["thread", True],
    "memory": [1, 1e9, True],
    "timeout": [0, "5", True, float("inf"), 1e15],
    "attempts": [0, 1.5, True],
    "backoff": [-1, 3601, "1"],
    "retry_on": [ConnectionError, ["ConnectionError"], [KeyboardInterrupt]],
    "queue": [""],
    "priority": [1001],
    "scopes": ["all"],
    "quick": [1],
    "cost": ["x", 0, -1, True, ("0.2", "0.1"), (1, 2, 3), float("nan"), 1e12],
    "version": [""],
    "input_modes": [[], "text/plain"],
    "output_modes": [["text"], ["text/plain; charset=utf-8"]],
    "extensions": [
        "urn:a",
        ["geo"],
        [Extension(uri="urn:a", params={"n": 2**53})],
        [Extension(uri="urn:a", params={"n": float("nan")})],
        [Extension(uri="urn:a", description="\ud800")],
        ["urn:a", "urn:a"],
        ["https://e.org/a,b"],
        [1],
    ],
}


@pytest.mark.parametrize("options", [{name: value} for name, values in WRONG.items() for value in values], ids=str)
def test_an_option_of_the_wrong_kind_is_named_with_what_it_must_be(options: dict[str, Any]) -> None:
    (name,) = options
    assert re.match(rf"(?s){name}= must be .+, not ", told(good, **options))


def test_an_agent_without_a_description_is_told_why_it_needs_one() -> None:
    async def silent(run: Run) -> None:
        pass

    assert told(silent) == "needs a docstring or description=, for its card"


def test_a_function_without_a_run_is_shown_how_to_take_it() -> None:
    def nothing() -> None:
        """Takes nothing."""

    def named(*, run: Run) -> None:
        """Takes the run by name alone."""

    def second(number: int, run: Run) -> None:
        """Takes the run behind an input."""

    class Shop:
        def method(self, run: Run) -> None:
            """Takes the run behind its object."""

    sentence = "must take the run as its first parameter: def "
    for function in (nothing, named, second):
        assert told(function) == f"{sentence}{function.__name__}(run)"
    assert told(Shop.method) == f"{sentence}method(run), outside of a class"
    assert define(Shop().method, {}).inputs is None


def test_star_parameters_cannot_be_on_a_card() -> None:
    def anything(run: Run, *values: int, **options: int) -> None:
        """Takes anything."""

    assert told(anything).startswith("cannot take *args or **kwargs")


def test_inputs_that_have_no_names_are_refused() -> None:
    def unnamed(run: Run, days: int = 1, /) -> None:
        """Has an input that no name reaches."""

    def named(run: Run, /, days: int = 1) -> None:
        """Has an input with a name."""

    assert told(unnamed).startswith("gets its inputs by name")
    assert define(named, {}).inputs


def test_a_type_that_is_not_known_or_not_json_is_named() -> None:
    def unknown(run: Run, where: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821
        """Has a type that is not there."""

    def not_json(run: Run, days: int, stack: list[Registry]) -> None:
        """Has a type that JSON cannot make."""

    def unclear(run: Run, days: list[int] | tuple[int]) -> None:
        """Has a type that JSON cannot tell apart."""

    def unsafe(run: Run, days: list[int] = [1]) -> None:  # noqa: B006  # the mistake
        """Has a default that is shared."""

    assert "a parameter's type is not known" in told(unknown)
    sentence = told(not_json)
    assert sentence.startswith(
        "the type of its parameter stack cannot come from JSON: type <class 'a2a.agents.Registry'> is not supported; "
        "take str, int, float, bool, "
    )
    assert "\n" not in sentence
    assert told(unclear).startswith("the type of its parameter days cannot come from JSON: Type unions may not ")
    assert told(unsafe).startswith("its parameters cannot be filled from JSON: Using a non-empty mutable ")


def test_an_agent_that_is_tried_once_has_no_exceptions_to_try_again_after() -> None:
    assert told(good, retry_on=[OSError]).endswith("set attempts=2 or leave retry_on= out")


def test_quick_agents_run_once() -> None:
    assert told(good, quick=True, attempts=2).startswith("quick agents run once")
    assert told(good, quick=True, concurrency=2).startswith("quick agents run inside the call, at once")


def test_a_name_that_is_taken_says_by_whom() -> None:
    async def other(run: Run) -> None:
        """Another one."""

    registry = Registry()
    registry.add(define(good, {}))
    registry.add(define(good, {}))  # the same function again, as a reloaded module gives
    with pytest.raises(AgentDefinitionError) as raised:
        registry.add(define(other, {"name": "good"}))
    assert f"{other.__code__.co_filename}:{other.__code__.co_firstlineno}" in str(raised.value)
    assert f"taken already, by {good.__code__.co_filename}:{good.__code__.co_firstlineno}" in str(raised.value)


def test_a_decorated_value_that_is_no_function_is_refused_with_its_line() -> None:
    here = inspect.currentframe()
    assert here
    with pytest.raises(AgentDefinitionError) as named:
        agent("hello")  # type: ignore[call-overload]
    place, line = f"{__file__}:", here.f_lineno - 1
    assert str(named.value) == f"{place}{line}: @agent decorates a function, not 'hello': @agent(name='hello')"
    with pytest.raises(AgentDefinitionError) as built_in:
        agent(print)
    assert str(built_in.value) == f"{place}{line + 4}: @agent decorates a function, not <built-in function print>"
    with pytest.raises(AgentDefinitionError) as decorated:

        @agent(timeout=5)
        class Hello:
            pass

    assert re.fullmatch(rf"{re.escape(place)}{line + 8}: @agent decorates .+Hello'>", str(decorated.value))


def test_an_agent_takes_what_it_and_its_skills_say() -> None:
    plain = define(good, {})
    assert (plain.input_modes, plain.output_modes) == (("text/plain", "application/json"),) * 2
    skill = Skill(id="s", name="S", description="d", tags=("t",), input_modes=("image/*",), output_modes=("text/csv",))
    skilled = define(good, {"skills": [skill], "input_modes": ["text/plain"], "output_modes": ["text/plain"]})
    assert [skilled.takes.has(kind) for kind in ("text/plain", "image/png", "text/csv")] == [True, True, False]
    assert [skilled.gives.has(kind) for kind in ("text/plain", "image/png", "text/csv")] == [True, False, True]


def test_the_card_of_an_agent_shows_the_media_types_that_differ() -> None:
    mine = define(good, {"input_modes": ["image/*"], "extensions": ["urn:a"]})
    other = define(good, {"name": "other", "skills": ["read"], "output_modes": ["text/csv"]})
    same = define(good, {"name": "same", "input_modes": ["image/*"]})
    card = describe(mine, "https://e.org/jsonrpc", [mine, other, same], security={})
    assert (card.input_modes, card.output_modes) == (("image/*",), ("text/plain", "application/json"))
    assert {skill.id: (skill.input_modes, skill.output_modes) for skill in card.skills} == {
        "good": ((), ()),
        "read": (("text/plain", "application/json"), ("text/csv",)),
        "same": ((), ()),
    }
    assert card.extensions == (Extension(uri="urn:a"),)


def test_each_option_has_a_type_for_editors_and_a_check() -> None:
    assert set(Options.__annotations__) == set(OPTIONS)
    assert set(get_type_hints(Options)) == set(OPTIONS), "their types are known"


def test_an_author_needs_one_import_and_no_django() -> None:
    code = (
        "import sys; from a2a import Failure, Part, Run, agent; import a2a; assert set(a2a.__all__) <= set(dir(a2a));"
        "print([name for name in sys.modules if name.partition('.')[0] in {'django', 'tasks_app', 'config'}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True, timeout=COMMAND_SECONDS
    )
    assert done.stdout == "[]\n"
