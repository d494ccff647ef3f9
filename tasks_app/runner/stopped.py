"""The reasons for which a run ends without its agent's doing."""


class Stopped(BaseException):
    """The run is over, whatever the agent thinks; no Exception, so that an agent cannot swallow it."""


class LostLease(Stopped):
    """The task is not this attempt's any more: canceled, taken over, or gone."""


class MessageWaits(Exception):
    """The run cannot end the task: a message came that its agent has not looked at."""


class WriteFailed(Stopped):
    """The database did not take a write; whether it did is not known. Another attempt starts from what was written."""


class AgentCrashed(Exception):
    """The agent raised what would end a thread, a loop or the process, such as SystemExit, or ended its process."""
