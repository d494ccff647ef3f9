"""Lets agents work on tasks, under leases. One runner a process: async agents share its event loop, sync ones its
threads. `claim_all` claims what is runnable until nothing is left or the slots are full; a freed slot asks for more."""

from tasks_app.runner.quick import Played, play_quickly
from tasks_app.runner.runner import Runner, runner

__all__ = ["Played", "Runner", "play_quickly", "runner"]
