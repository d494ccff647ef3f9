"""The definition of an agent: the checks of its options, and what its function says about its form and its inputs."""

import difflib
import inspect
from collections.abc import Callable
from typing import Any, Literal, get_type_hints

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import replace

from a2a.options import NAME, NAME_WORDS, OPTIONS
from a2a.types import Json, Skill

Form = Literal["coroutine", "async generator", "function", "generator"]
TYPES = (
    "take str, int, float, bool, a list or a dict of these, Literal, an Enum, a dataclass, a TypedDict or a "
    "msgspec.Struct"
)
"""The words for types that a parameter of an agent may have."""


class AgentDefinitionError(Exception):
    """A mistake in the definition of an agent. The message begins with its file and line."""


def where(function: Callable[..., Any]) -> str:
    """Return the file and line of a function's definition."""
    code = inspect.unwrap(function).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"


def mistake(function: Callable[..., Any], name: str, sentence: str) -> AgentDefinitionError:
    """Return the error for a mistake in the definition of an agent."""
    return AgentDefinitionError(f'{where(function)}: agent "{name}": {sentence}')


def check_options(function: Callable[..., Any], name: str, options: Json) -> None:
    """Raise AgentDefinitionError for an unknown option or an invalid value."""
    for option, value in options.items():
        if option not in OPTIONS:
            near = difflib.get_close_matches(option, OPTIONS, 1)
            hint = f"; did you mean {near[0]}=?" if near else f"; there are {', '.join(OPTIONS)}"
            raise mistake(function, name, f"there is no option {option}={hint}")
        if not OPTIONS[option].fits(value):
            raise mistake(function, name, f"{option}= must be {OPTIONS[option].words}, not {value!r}")
    if not NAME.fullmatch(name):
        raise mistake(function, name, f"the name must be {NAME_WORDS}; set name=")


def check_together(function: Callable[..., Any], name: str, values: Json) -> None:
    """Raise AgentDefinitionError for options that contradict each other."""
    if callable(values["quick"]):
        _check_quick(function, name, values["quick"])
    if values["quick"] is True and values["attempts"] != 1:
        raise mistake(function, name, "quick agents run once, inside the call: leave attempts= out")
    if values["quick"] and values["isolation"]:
        raise mistake(function, name, "quick agents run inside the call: leave quick= or isolation= out")
    if values["quick"] is True and values["concurrency"]:
        raise mistake(function, name, "quick agents run inside the call, at once: leave concurrency= out")
    if values["retry_on"] != OPTIONS["retry_on"].default and values["attempts"] == 1:
        raise mistake(
            function, name, "an agent that is tried once is never called again: set attempts=2 or leave retry_on= out"
        )
    if values["memory"] is not None and not values["isolation"]:
        raise mistake(function, name, 'memory= is the limit of a process: it needs isolation="process"')


def _check_quick(function: Callable[..., Any], name: str, quick: Callable[..., Any]) -> None:
    """Raise AgentDefinitionError for a function of `quick=` that no call could use."""
    if {form_of(quick), form_of(type(quick).__call__)} != {"function"}:  # an object may have an async __call__
        raise mistake(function, name, 'quick= must be a plain function, which answers at once: "def" without a yield')
    try:
        inspect.signature(quick).bind(None)
    except TypeError:
        raise mistake(function, name, "quick= must be a function of one parameter, the message") from None
    except ValueError:
        """Some functions and classes of Python itself show no parameters."""


def complete_skills(name: str, description: str, skills: Any) -> tuple[Skill, ...]:
    """Return the skills of an agent, complete. The default is one skill with the name of the agent."""
    return tuple(
        # Verifiers disagree on whether a signature covers an empty member, so no required member is empty
        # (docs/protocol.md#signatures).
        replace(
            skill,
            name=skill.name or _title(skill.id),
            description=skill.description or description,
            tags=skill.tags or (name,),
        )
        if isinstance(skill, Skill)
        else Skill(id=skill, name=_title(skill), description=description, tags=(name,))
        for skill in skills or (name,)
    )


def _title(skill: str) -> str:
    return skill.replace("-", " ").replace("_", " ").capitalize()


def form_of(function: Callable[..., Any]) -> Form:
    """Return the form of the outermost function that is more than a plain one. A plain decorator passes on what the
    function behind it gives, and an async one may have a sync function behind it."""
    plain = inspect.unwrap(function, stop=lambda layer: _form_of(layer) != "function")
    return _form_of(plain)


def _form_of(function: Callable[..., Any]) -> Form:
    if inspect.isasyncgenfunction(function):
        return "async generator"
    if inspect.iscoroutinefunction(function):
        return "coroutine"
    return "generator" if inspect.isgeneratorfunction(function) else "function"


def inputs_of(function: Callable[..., Any], name: str) -> type[Struct] | None:
    """Return a struct of the parameters after `run`, or None. Raises AgentDefinitionError."""
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind is parameters[0].KEYWORD_ONLY:
        raise _no_run(function, name)
    if parameters[0].name in {"self", "cls"}:
        raise _no_run(function, name, ", outside of a class")
    if any(p.kind in {p.VAR_POSITIONAL, p.VAR_KEYWORD} for p in parameters):
        raise mistake(function, name, "cannot take *args or **kwargs: name the parameters, they are on the card")
    if any(p.kind is p.POSITIONAL_ONLY for p in parameters[1:]):
        raise mistake(
            function, name, 'gets its inputs by name: move the "/" to directly behind the run, or leave it out'
        )
    if len(parameters) == 1:
        return None
    try:
        hints = get_type_hints(function, include_extras=True)  # with the limits of Annotated
    except NameError as error:
        raise mistake(function, name, f"a parameter's type is not known: {error}") from None
    fields = []
    for parameter in parameters[1:]:
        hint = hints.get(parameter.name, Any)
        if _is_run(hint):
            raise _no_run(function, name)
        _check_type(function, name, parameter.name, hint)
        default = NODEFAULT if parameter.default is parameter.empty else parameter.default
        fields.append((parameter.name, hint, default))
    try:
        inputs = msgspec.defstruct(f"{name}-inputs", fields, kw_only=True, forbid_unknown_fields=True)
        msgspec.json.schema(inputs)
    except TypeError as error:
        raise mistake(function, name, f"its parameters cannot be filled from JSON: {error}") from None
    return inputs


def _no_run(function: Callable[..., Any], name: str, more: str = "") -> AgentDefinitionError:
    return mistake(function, name, f"must take the run as its first parameter: def {function.__name__}(run){more}")


def _is_run(hint: Any) -> bool:
    """Return whether a type is Run. By its name, because run.py needs the agents, which need this module."""
    return (getattr(hint, "__module__", ""), getattr(hint, "__qualname__", "")) == ("a2a.run", "Run")


def _check_type(function: Callable[..., Any], name: str, parameter: str, hint: Any) -> None:
    """Raise AgentDefinitionError for a parameter whose type no value of JSON has."""
    try:
        msgspec.json.schema(hint)
    except TypeError as error:
        # For a class that it does not know, msgspec advises what only a caller of msgspec can do, in several lines.
        reason = f"{str(error).splitlines()[-1]}; {TYPES}"
        sentence = f"the type of its parameter {parameter} cannot come from JSON: {reason}"
        raise mistake(function, name, sentence) from None
