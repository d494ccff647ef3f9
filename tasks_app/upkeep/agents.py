"""The routine that reads the folder of agents again when its files have changed."""

from tasks_app.agent_files import folder
from tasks_app.hints import hints
from tasks_app.runner.runner import runner
from tasks_app.upkeep.routine import Routine


class AgentsRoutine(Routine):
    """The thread that looks at the folder. Every process that runs agents or answers calls has one."""

    name = "agents"
    title = "reading the folder of agents again"

    def run_round(self) -> None:
        """Read the folder again if need be. Tasks of agents that are new are then begun at once."""
        if folder.refresh():
            runner.take_in_agents()
            hints.offer()


agents_routine = AgentsRoutine()
"""The routine of this process."""
