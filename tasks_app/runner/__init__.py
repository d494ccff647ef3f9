"""Lets agents work on tasks, under leases. One runner a process: the runs of an async agent share an event loop, those
of any other have a thread each. `claim_all` claims what is runnable until nothing is left or the slots are full; a
freed slot asks for more."""

from tasks_app.runner.doors import doors
from tasks_app.runner.quick import Played, play_quickly
from tasks_app.runner.runner import Runner, runner

__all__ = ["Played", "Runner", "doors", "play_quickly", "runner"]
