"""Drafts: actions that an agent has built but not yielded. They have no effect, so the author gets a warning."""

import sys
from typing import Any, NamedTuple, TypeVar

FEW = 16
"""Number of drafts that are always remembered. Above it, only the first of each source line is remembered, because a
missing `yield` is often in a loop."""
MOST = 64
"""Number of drafts that are remembered at most."""
AnyAction = TypeVar("AnyAction")


class Place(NamedTuple):
    """A source line that builds an action, and the method of Run that it calls."""

    file: str
    line: int
    maker: str


class Drafts:
    """The drafts of one run."""

    def __init__(self) -> None:
        self._actions: dict[int, tuple[Any, Place]] = {}
        """Drafts by identity. The table refers to each action, so that Python does not reuse its identity."""
        self.elsewhere: tuple[str, ...] = ()
        """Warnings from the child process in which the agent ran."""

    def add(self, action: AnyAction) -> AnyAction:
        """Remember an action. Only methods of Run may call this: the source line is that of their caller."""
        maker = sys._getframe(1)
        frame = maker.f_back or maker
        place = Place(frame.f_code.co_filename, frame.f_lineno, maker.f_code.co_name)
        if len(self._actions) < FEW or (len(self._actions) < MOST and place not in self._places()):
            self._actions[id(action)] = (action, place)
        return action

    def remove(self, action: Any) -> None:
        """Forget an action, because the agent has yielded it."""
        self._actions.pop(id(action), None)

    def _places(self) -> dict[Place, None]:
        return dict.fromkeys(place for _, place in self._actions.values())

    def warnings(self, agent: str) -> tuple[str, ...]:
        """Return a sentence for each source line that builds an action and does not yield it."""
        if not self._actions:
            return self.elsewhere
        own = tuple(
            f'{place.file}:{place.line}: agent "{agent}": run.{place.maker}(...) does nothing by itself: did you '
            'forget "yield"?'
            for place in self._places()
        )
        return (*self.elsewhere, *own)
