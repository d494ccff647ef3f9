"""The process."""

from pathlib import Path

from config.environment import address, choice, flag, folder, level, number, path, read_env_file, text, whole
from config.project import PROJECT

A2A_ENV_FILE = path("A2A_ENV_FILE", str(PROJECT / ".env"))
"""A file with settings for a development server. A file that is named must exist. Empty for none. With `SECRET_KEY` no
file is read."""
if A2A_ENV_FILE:
    read_env_file(Path(A2A_ENV_FILE))
DEVELOPMENT = not text("SECRET_KEY")
"""True for a development server: a server without a SECRET_KEY, on loopback only."""
HOST = address("HOST", "127.0.0.1")
"""The address at which the server listens."""
PORT = whole("PORT", 8000, 1, 65_535)
"""The port at which the server listens."""
HAS_SOCKETS = True
"""False for `manage.py runserver`, whose server opens no WebSocket connection."""
DATA_DIR = Path(folder("DATA_DIR", str(PROJECT / ".data")))
"""The folder of the SQLite file, of stored files, and of the secrets of a development server."""
DEBUG = flag("DEBUG")
"""Django's debug pages. Refused in production."""
LOG_LEVEL = level("LOG_LEVEL", "INFO")
"""The level of the log: DEBUG, INFO, WARNING, ERROR or CRITICAL."""
LOG_FORMAT = choice("LOG_FORMAT", ("line", "json"))
"""The format of the log: a line of text, or a JSON object a line, which has the fields of errors."""
A2A_LOG_CALLS = flag("A2A_LOG_CALLS", DEVELOPMENT)
"""Log a line for each call, with its method, status and duration."""
A2A_GRACE_SECONDS = number("A2A_GRACE_SECONDS", 2 if DEVELOPMENT else 25, 0, 86_400)
"""The time that working agents have to finish when the process is told to stop."""
A2A_HELPLESS_SECONDS = number("A2A_HELPLESS_SECONDS", 0 if DEVELOPMENT else 60, 0, 86_400)
"""The time after which a process that cannot recover (all its threads, all its slots for async agents, or eight of its
event loops hang) ends with exit code 1 and the usual grace, so that a supervisor restarts it. 0: it reports the fault
and does not end."""
