"""The server that forks the processes of agents, as their guard. Importing this module, which that server alone does,
moves it out of the reach of signals to a whole process group or control group. It ends when its worker does."""

import os
import signal

from tasks_app.runner import children

__all__ = ["children"]

os.setsid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
