"""Exceptions that end a run for other reasons than its agent's result."""


class Stopped(BaseException):
    """The run is over. Not an Exception, so that an agent cannot swallow it."""


class LostLease(Stopped):
    """The task is not this run's any more: it was canceled, claimed again, or deleted."""


class MessageWaits(Exception):
    """The run cannot end the task: its agent has not read the newest message."""


class WriteFailed(Stopped):
    """The database gave no result for a write, which may have been committed. Another attempt starts from the log."""


class FileRefused(Exception):
    """The storage of files has taken no file of the result for as long as a lease."""


class AgentCrashed(Exception):
    """The agent ended its process, or raised an exception that ends a thread, a loop or a process: SystemExit."""


class ProcessCrashed(AgentCrashed):
    """The process of an agent ended before the agent did: by a signal, or by an exit."""


def exception_of(error: BaseException) -> Exception:
    """Return the error of an agent as an Exception: AgentCrashed in place of one that would end a thread or process."""
    if isinstance(error, Exception):
        return error
    crash = AgentCrashed(repr(error))
    crash.__cause__ = error
    return crash
