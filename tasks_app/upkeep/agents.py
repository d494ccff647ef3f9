"""The routine that reads the folder of agents again when its files have changed."""

from tasks_app.agent_files import folder
from tasks_app.hints import hints
from tasks_app.runner import quick
from tasks_app.runner.runner import runner
from tasks_app.upkeep.routine import Routine


class AgentsRoutine(Routine):
    """The thread that looks at the folder. Every process that runs agents or answers calls has one."""

    name = "agents"
    title = "reading the folder of agents again"

    def run_round(self) -> None:
        """Read the folder again if need be. Tasks of agents that are new are then begun at once.

        The loops and threads of agents that are gone end a round later, when no call that has found one is about to
        begin.
        """
        runner.leave_agents()
        quick.leave_agents()
        if folder.refresh():
            runner.take_in_agents()
            hints.offer()


agents_routine = AgentsRoutine()
"""The routine of this process."""
