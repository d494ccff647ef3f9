"""The door to which the calls go."""

from tests.transports.exchanges.conftest import post

__all__ = ["post"]
