"""Actions that an agent has made: `run.status(...)` without a `yield` before it does nothing, and says nothing."""

import sys
from typing import Any, TypeVar

from msgspec import Struct

MOST = 16
"""Drafts that are remembered for one line, and lines: an agent that forgets one forgets it in a loop."""
Made = TypeVar("Made")


class Place(Struct, frozen=True):
    """Where an action was made, and by which method of the run."""

    file: str
    line: int
    maker: str


class Drafts:
    """The actions that were made in a run and not given yet."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Place]] = {}
        """By identity; the action is kept, so that no other can have that."""
        self._places: dict[Place, int] = {}
        """How many of them were made at each place."""
        self.elsewhere: tuple[str, ...] = ()
        """Sentences from the process in which the agent ran."""

    def add(self, action: Made) -> Made:
        """Remember the action, which is made by the method that calls this."""
        maker = sys._getframe(1)
        frame = maker.f_back or maker
        place = Place(frame.f_code.co_filename, frame.f_lineno, maker.f_code.co_name)
        number = self._places.get(place, 0)
        if number < MOST and len(self._places) <= MOST:
            self._made[id(action)] = (action, place)
            self._places[place] = number + 1
        return action

    def give(self, action: Any) -> None:
        """Forget the action: it is given."""
        if (made := self._made.pop(id(action), None)) is not None:
            place = made[1]
            self._places[place] -= 1
            if not self._places[place]:
                del self._places[place]

    def forgotten(self, agent: str) -> tuple[str, ...]:
        """A sentence for each line that made an action which was never given."""
        places = dict.fromkeys(place for _, place in self._made.values())
        own = tuple(
            f'{place.file}:{place.line}: agent "{agent}": run.{place.maker}(...) does nothing by itself: did you '
            'forget "yield"?'
            for place in places
        )
        return (*self.elsewhere, *own)
