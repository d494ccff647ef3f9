"""Agents: the decorator @agent, and the registry. What a definition must be is in definitions.py, and the argument of
an agent, the Run, is in run.py.

    from a2a import Run, agent

    @agent(skills=["greet"], timeout=60)
    async def hello(run: Run):
        "Greets people by name."
        yield f"Hello, {run.text}!"

The function may be sync or async, and may yield values or return one. Valid values are text, bytes, dicts and lists
(data), a Part, an Artifact, and the results of run.status, run.ask, run.artifact, run.reply and run.reject. An agent
raises a2a.Failure to fail with a sentence for the caller, and a2a.Retry to be called again. For any other exception the
caller gets a fixed sentence with a reference.
"""

import inspect
import threading
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeVar, Unpack, overload

import msgspec
from msgspec import Struct

from a2a.definitions import (
    AgentDefinitionError,
    Form,
    check_options,
    check_together,
    complete_skills,
    form_of,
    inputs_of,
    mistake,
    where,
)
from a2a.media import Modes, modes
from a2a.mistakes import AgentMistake, at_raise
from a2a.money import Cost, cost_of
from a2a.options import OPTIONS, Options
from a2a.types import Extension, Json, Message, Privacy, Skill
from a2a.workflows import Phase


class Agent(Struct, frozen=True, kw_only=True):
    """An agent: its function and its options."""

    name: str
    description: str
    skills: tuple[Skill, ...]
    function: Callable[..., Any]
    form: Form
    inputs: type[Struct] | None
    """A struct of the parameters after `run`, which the message's first data part fills; None without parameters."""
    timeout: float
    """The longest duration of one attempt, in seconds."""
    attempts: int
    """The most calls for one message. With 1, a task whose run is interrupted fails."""
    retry_on: tuple[type[Exception], ...]
    """Exceptions that lead to another attempt."""
    backoff: float
    """Seconds before the second attempt. The pause doubles with each further attempt."""
    queue: str
    priority: int
    """Tasks of higher priority are claimed first."""
    concurrency: int
    """The most simultaneous runs over all processes; 0 for no limit but the slots."""
    scopes: tuple[str, ...]
    """Scopes that a caller needs in addition to the method's."""
    quick: bool | Callable[[Message], bool]
    """True for an agent that runs inside the call, and may answer with a bare message. A function decides by the first
    message of a task."""
    isolation: Literal["", "process"]
    """"process" for runs in child processes, which can be ended; "" for runs on an event loop or in a thread."""
    memory: int | None
    """The memory limit of a child process in bytes; None for no limit."""
    cost: Cost | None
    """The minimum and the maximum of what a task is expected to cost; None for an agent without a cost, which no budget
    limits."""
    max_latency: float | None
    """Seconds after which a call of ADR-002 that waits is answered with a timeout, while its task goes on; None for
    `A2A_INVOKE_SECONDS`."""
    max_input_tokens: int | None
    """The most tokens of one message, counted as four bytes of text each; None for the limit of its bytes."""
    max_output_tokens: int | None
    """The most tokens that the agent gives, for its card; None for the limit of a task."""
    privacy: Privacy | None
    """The personal data that the agent works with, for its card; None if its author does not say."""
    version: str
    listed: bool
    """True for an agent on public cards and in the catalogue; False for one on extended cards only."""
    failures_as_results: bool
    """True for results in place of errors in the language of zones: a task that fails has the status `error`."""
    phases: tuple[Phase, ...]
    """The phases of workflows whose messages the agent gets."""
    extensions: tuple[Extension, ...]
    input_modes: tuple[str, ...]
    output_modes: tuple[str, ...]
    takes: Modes
    """The media types that the agent and its skills accept."""
    gives: Modes
    """The media types that the agent and its skills return."""

    @property
    def blocks(self) -> bool:
        """True if the function is sync, so that it blocks its thread."""
        return self.form in {"function", "generator"}

    @property
    def is_async(self) -> bool:
        """True if runs share an event loop. Any other run takes a thread, for the agent or to watch its process."""
        return not self.blocks and not self.isolation

    def is_quick(self, message: Message) -> bool:
        """Return whether the agent runs inside the call for a new task with this message. Raises AgentMistake if the
        function of `quick=` raises an error, or is async."""
        if not callable(self.quick):
            return self.quick
        try:
            is_quick: Any = self.quick(message)
        except Exception as error:
            place, words = at_raise(error.__traceback__) or where(self.function), f"{type(error).__name__}: {error}"
            raise AgentMistake(f'{place}: agent "{self.name}": the function of quick= raised {words}') from error
        if inspect.isawaitable(is_quick):
            if inspect.iscoroutine(is_quick):
                is_quick.close()  # Python must not warn about it too.
            name = f'{where(self.function)}: agent "{self.name}"'
            raise AgentMistake(f"{name}: the function of quick= returned something to await: return True or False")
        return bool(is_quick)

    @property
    def schema(self) -> Json | None:
        """The JSON Schema of the inputs."""
        return msgspec.json.schema(self.inputs) if self.inputs else None


class Registry:
    """The agents of this process, by name.

    A change puts a new table in place of the old one, so that a reader of any thread sees all of it or none.
    """

    def __init__(self) -> None:
        self._agents: dict[str, Agent] = {}
        self._changing = threading.Lock()
        self.revision = 0
        """The number of changes, for caches of what depends on the agents."""

    def add(self, new: Agent) -> None:
        """Register an agent. Raises AgentDefinitionError if another function has its name."""
        staged = _STAGED.get()
        if staged is not None:
            _check_name(new, staged)
            staged[new.name] = new
        else:
            self.swap((), {new.name: new})

    @contextmanager
    def staging(self) -> Iterator[dict[str, Agent]]:
        """Collect the agents that this thread defines meanwhile in a table of their own, which `swap` takes."""
        table: dict[str, Agent] = {}
        token = _STAGED.set(table)
        try:
            yield table
        finally:
            _STAGED.reset(token)

    def swap(self, old: Container[str], new: Mapping[str, Agent]) -> None:
        """Put agents in place of those with the old names, all at once.

        Raises AgentDefinitionError, and changes nothing, if another function has one of the new names.
        """
        with self._changing:
            table = {name: agent for name, agent in self._agents.items() if name not in old}
            for agent in new.values():
                _check_name(agent, table)
            self._agents = table | dict(new)
            self.revision += 1

    def get(self, name: str) -> Agent | None:
        """Return the agent of a name, or None."""
        return self._agents.get(name)

    def with_skill(
        self, skill: str, last: Container[str] = (), suits: Callable[[Agent], bool] | None = None
    ) -> Agent | None:
        """Return the first agent that suits and has a skill of this id, or None. Agents with names in `last` come
        last."""
        able = (
            agent for agent in self if any(own.id == skill for own in agent.skills) and (suits is None or suits(agent))
        )
        return min(able, key=lambda agent: agent.name in last, default=None)

    def names(self) -> tuple[str, ...]:
        """Return the names of all agents, sorted."""
        return tuple(sorted(self._agents))

    def __iter__(self) -> Iterator[Agent]:
        table = self._agents
        return iter([table[name] for name in sorted(table)])


_STAGED: ContextVar[dict[str, Agent] | None] = ContextVar("_STAGED", default=None)
"""The table that collects the agents of a thread, if one does."""
registry = Registry()
"""The agents of this process, which @agent adds to."""


def _check_name(new: Agent, table: Mapping[str, Agent]) -> None:
    """Raise AgentDefinitionError if another function has the name of an agent in a table."""
    old = table.get(new.name)
    if old is not None and where(old.function) != where(new.function):
        raise mistake(new.function, new.name, f"the name is taken already, by {where(old.function)}")


def _caller() -> str:
    """Return the file and line of the `@agent` call, for an object that is no function."""
    frame = inspect.currentframe()
    while frame and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "?"


Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def agent(function: Function) -> Function: ...


@overload
def agent(**options: Unpack[Options]) -> Callable[[Function], Function]: ...


def agent(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Register a function as an agent, with or without options: name, description, skills, timeout, attempts,
    retry_on, backoff, queue, priority, concurrency, scopes, quick, isolation, memory, cost, max_latency,
    max_input_tokens, max_output_tokens, privacy, version, listed, phases, failures_as_results, extensions, input_modes,
    output_modes. The fields of a2a.agents.Agent describe them.

    Raises AgentDefinitionError with the file and line of the mistake.
    """
    if function is None:
        return lambda target: agent(target, **options)
    if not callable(function) or not hasattr(inspect.unwrap(function), "__code__"):
        hint = f": @agent(name={function!r})" if isinstance(function, str) else ""
        raise AgentDefinitionError(f"{_caller()}: @agent decorates a function, not {function!r}{hint}")
    registry.add(define(function, options))
    return function


def define(function: Callable[..., Any], options: Json) -> Agent:
    """Return the agent of a function and its options. Raises AgentDefinitionError for an invalid definition."""
    name = options.get("name") or function.__name__.replace("_", "-").lower()
    check_options(function, str(name), options)
    values = {name: options.get(name, option.default) for name, option in OPTIONS.items()}
    doc = inspect.getdoc(function)
    description = values["description"] or (doc.split("\n\n")[0].replace("\n", " ") if doc else "")
    if not description:
        raise mistake(function, name, "needs a docstring or description=, for its card")
    check_together(function, name, values)
    values |= {"name": name, "description": description, "scopes": tuple(values["scopes"])}
    values["retry_on"] = tuple(values["retry_on"])
    values["phases"] = tuple(Phase(phase) for phase in values["phases"])
    values["cost"] = None if values["cost"] is None else cost_of(values["cost"])
    values["skills"] = skills = complete_skills(name, description, values["skills"])
    if values["listed"] and not any(skill.listed for skill in skills):
        raise mistake(function, name, "has no skill that is listed, and a card needs one: set listed=False")
    values["extensions"] = tuple(
        Extension(uri=item) if isinstance(item, str) else item for item in values["extensions"]
    )
    values |= {"input_modes": tuple(values["input_modes"]), "output_modes": tuple(values["output_modes"])}
    # Media types of a skill add to the agent's own (docs/protocol.md#cards).
    values["takes"] = modes([*values["input_modes"], *(mode for skill in skills for mode in skill.input_modes)])
    values["gives"] = modes([*values["output_modes"], *(mode for skill in skills for mode in skill.output_modes)])
    return Agent(function=function, form=form_of(function), inputs=inputs_of(function, name), **values)
