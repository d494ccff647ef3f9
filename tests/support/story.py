"""One story for every door and language: what a client can do, and what it is told when it may not.

A door carries bytes (doors.py), a speaker says a wish in one language and returns the answer in neutral words
(speaker.py), a chapter knows neither (chapters/).
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple

from tests.support.doors import Door
from tests.support.speaker import Speaker


class Cast(NamedTuple):
    """The speakers of a story."""

    me: Speaker
    again: Speaker
    """A second client with my key."""
    stranger: Speaker


def cast(kind: type[Speaker], version: str | None, door: Door, key: str, other: str) -> Cast:
    """Let one kind of speaker play all parts, with the keys of two callers."""
    me = kind(door=door, key=key, version=version)
    return Cast(me, replace(me, ids=[100]), replace(me, key=other, ids=[200]))


class Chapter(NamedTuple):
    """A chapter, and the trait that speakers need for it."""

    tell: Callable[[Cast], Awaitable[None]]
    needs: str

    @property
    def name(self) -> str:
        return self.tell.__name__

    def suits(self, kind: type[Speaker]) -> bool:
        """Return whether speakers of this kind can tell it."""
        return self.needs in {"", *kind.traits} and self.name not in kind.untold


CHAPTERS: list[Chapter] = []
Telling = Callable[[Cast], Awaitable[None]]


def chapter(needs: str = "") -> Callable[[Telling], Telling]:
    """Add the function to the chapters."""

    def add(tell: Telling) -> Telling:
        CHAPTERS.append(Chapter(tell, needs))
        return tell

    return add
