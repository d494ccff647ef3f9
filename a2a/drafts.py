"""Actions that an agent has made: `run.status(...)` without a `yield` before it does nothing, and says nothing."""

import sys
from typing import Any, NamedTuple, TypeVar

FEW = 16
"""Drafts that are remembered whatever they are; beyond them only the first of a line, for an agent that forgets one
forgets it in a loop."""
MOST = 64
Made = TypeVar("Made")


class Place(NamedTuple):
    """Where an action was made, and by which method of the run."""

    file: str
    line: int
    maker: str


class Drafts:
    """The actions that were made in a run and not given yet."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Place]] = {}
        """By identity; the action is kept, so that no other can have that."""
        self.elsewhere: tuple[str, ...] = ()
        """Sentences from the process in which the agent ran."""

    def add(self, action: Made) -> Made:
        """Remember the action, which is made by the method that calls this."""
        maker = sys._getframe(1)
        frame = maker.f_back or maker
        place = Place(frame.f_code.co_filename, frame.f_lineno, maker.f_code.co_name)
        if len(self._made) < FEW or (len(self._made) < MOST and place not in self._places()):
            self._made[id(action)] = (action, place)
        return action

    def give(self, action: Any) -> None:
        """Forget the action: it is given."""
        self._made.pop(id(action), None)

    def _places(self) -> dict[Place, None]:
        return dict.fromkeys(place for _, place in self._made.values())

    def forgotten(self, agent: str) -> tuple[str, ...]:
        """A sentence for each line that made an action which was never given."""
        own = tuple(
            f'{place.file}:{place.line}: agent "{agent}": run.{place.maker}(...) does nothing by itself: did you '
            'forget "yield"?'
            for place in self._places()
        )
        return (*self.elsewhere, *own)
