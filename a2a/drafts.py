"""Actions that an agent built and never yielded: `run.status(...)` without `yield` has no effect, and no warning."""

import sys
from typing import Any, NamedTuple, TypeVar

FEW = 16
"""Drafts that are always remembered. Beyond them, only the first of each source line is: a forgotten `yield` is often
in a loop."""
MOST = 64
Made = TypeVar("Made")


class Place(NamedTuple):
    """The source line that built an action, and the method of Run that it called."""

    file: str
    line: int
    maker: str


class Drafts:
    """The actions of a run that were built and not yet yielded."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Place]] = {}
        """Actions by identity. The reference keeps the identity from being reused."""
        self.elsewhere: tuple[str, ...] = ()
        """Sentences from the process in which the agent ran."""

    def add(self, action: Made) -> Made:
        """Remember an action. The caller must be the method of Run that built it."""
        maker = sys._getframe(1)
        frame = maker.f_back or maker
        place = Place(frame.f_code.co_filename, frame.f_lineno, maker.f_code.co_name)
        if len(self._made) < FEW or (len(self._made) < MOST and place not in self._places()):
            self._made[id(action)] = (action, place)
        return action

    def give(self, action: Any) -> None:
        """Forget an action that was yielded."""
        self._made.pop(id(action), None)

    def _places(self) -> dict[Place, None]:
        return dict.fromkeys(place for _, place in self._made.values())

    def forgotten(self, agent: str) -> tuple[str, ...]:
        """Return a sentence for each source line whose action was never yielded."""
        own = tuple(
            f'{place.file}:{place.line}: agent "{agent}": run.{place.maker}(...) does nothing by itself: did you '
            'forget "yield"?'
            for place in self._places()
        )
        return (*self.elsewhere, *own)
