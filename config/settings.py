"""Every setting, read from the environment here and nowhere else, with the typed readers of environment.py.

The text below a setting is its row in docs/reference/settings.md: `manage.py a2a reference --write` after a change.
"""

from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from config.data_folder import make_folder, make_private_file, read_or_make_secret
from config.databases import postgres_options, sqlite_options
from config.environment import (
    address,
    database,
    flag,
    hosts,
    level,
    long_secret,
    members,
    names,
    networks,
    number,
    origins,
    path,
    read_env_file,
    relays,
    text,
    whole,
)
from config.logs import logging_options

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT if (ROOT / "manage.py").exists() else Path.cwd()
"""The folder of the clone; for an installed package, the folder where its command is called."""

# ---------------------------------------------------------------- The process

A2A_ENV_FILE = path("A2A_ENV_FILE", str(PROJECT / ".env"))
"""A file with settings for a development server. Empty for none. With `SECRET_KEY` no file is read."""
if A2A_ENV_FILE:
    read_env_file(Path(A2A_ENV_FILE))
DEVELOPMENT = not text("SECRET_KEY")
"""True for a development server: a server without a SECRET_KEY, on loopback only."""
HOST = address("HOST", "127.0.0.1")
"""The address at which the server listens."""
PORT = whole("PORT", 8000, 1, 65_535)
"""The port at which the server listens."""
DATA_DIR = Path(text("DATA_DIR", str(PROJECT / ".data"))).absolute()
"""The folder of the SQLite file, of stored files, and of the secrets of a development server."""
DEBUG = flag("DEBUG")
"""Django's debug pages. Refused in production."""
LOG_LEVEL = level("LOG_LEVEL", "INFO")
"""The level of the log: DEBUG, INFO, WARNING, ERROR or CRITICAL."""
A2A_LOG_CALLS = flag("A2A_LOG_CALLS", DEVELOPMENT)
"""Log a line for each call, with its method, status and duration."""
A2A_GRACE_SECONDS = number("A2A_GRACE_SECONDS", 2 if DEVELOPMENT else 25)
"""The time that working agents have to finish when the process is told to stop."""
A2A_HELPLESS_SECONDS = number("A2A_HELPLESS_SECONDS", 0 if DEVELOPMENT else 60)
"""The time after which a process that cannot recover (all its threads, or eight of its event loops, hang) ends with
exit code 1 and the usual grace, so that a supervisor restarts it. 0: it reports the fault and does not end."""

# ------------------------------------------------------- Secrets and addresses

SECRET_KEY = long_secret("SECRET_KEY") or read_or_make_secret(make_folder(DATA_DIR) / "secret.key")
"""The secret that signs sessions and links, seals stored secrets, and digests API keys; 32 characters at least. A
server with this setting is a production server. Without it, the server is a development server on loopback only, with a
random secret in `DATA_DIR`."""
SECRET_KEY_FALLBACKS = names("SECRET_KEY_FALLBACKS")
"""Former values of `SECRET_KEY`. They still open what they have sealed, and API keys of that time still work."""
ALLOWED_HOSTS = names("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1],testserver" if DEVELOPMENT else "")
"""Host names of the server, for cards and the admin."""
DEV_KEY = text("DEV_KEY")
"""A further API key of a development server, valid while it is set; 20 characters at least."""
A2A_PUBLIC_URL = text("A2A_PUBLIC_URL").rstrip("/")
"""The base URL on cards. Empty: the URL of the request, if its host is in `ALLOWED_HOSTS`."""
A2A_TRUST_FORWARDED = text("A2A_TRUST_FORWARDED").lower()
"""The headers of a proxy that give the base URL: `x-forwarded` (`X-Forwarded-Proto`, `X-Forwarded-Host`) or `forwarded`
(RFC 7239). If a header has several values, the last one counts."""
if A2A_TRUST_FORWARDED not in {"", "x-forwarded", "forwarded"}:
    raise ImproperlyConfigured(f"A2A_TRUST_FORWARDED must be x-forwarded or forwarded, not {A2A_TRUST_FORWARDED!r}")
A2A_TRUSTED_PROXIES = networks("A2A_TRUSTED_PROXIES")
"""Addresses and networks (`10.1.0.0/16`) of proxies whose `X-Forwarded-For` gives the address of a caller, or whose
`Forwarded`, with `A2A_TRUST_FORWARDED=forwarded`. Empty: these headers are ignored."""
A2A_CORS_ORIGINS = origins("A2A_CORS_ORIGINS")
"""Origins of pages that may call this server besides its own pages, such as `https://app.example`. `*` is all."""

# ---------------------------------------------------------- Cards and what is on

A2A_CARD_KEY = text("A2A_CARD_KEY").replace("\\n", "\n")
"""Keys in PEM, often as `A2A_CARD_KEY_FILE`. The first key signs cards, and all keys are published. `\\n` is a line
end."""
A2A_PROVIDER = text("A2A_PROVIDER")
"""The organisation that runs the agents, for every card. It needs `A2A_PROVIDER_URL`."""
A2A_PROVIDER_URL = text("A2A_PROVIDER_URL")
"""The address of that organisation, for every card."""
A2A_DOCUMENTATION_URL = text("A2A_DOCUMENTATION_URL")
"""The address of the documentation, for every card."""
A2A_ICON_URL = text("A2A_ICON_URL")
"""The address of an icon, for every card."""
A2A_PUSH = flag("A2A_PUSH", True)
"""Webhooks. Switched off, registrations are refused with -32003, cards say so, and existing webhooks still get
deliveries."""
A2A_STREAMING = flag("A2A_STREAMING", True)
"""Streams and subscriptions. Switched off, they are refused with -32004, and cards say so."""
A2A_EXTENDED_CARD = flag("A2A_EXTENDED_CARD", True)
"""The extended card. Switched off, it is refused with -32004 (0.3: -32007, 0.2: 404), and cards say so."""
A2A_FRONT_PAGE = flag("A2A_FRONT_PAGE", True)
"""A page at `/` for browsers, with the public agents and how to call them."""

# --------------------------------------------------------------------- Agents

A2A_DEFAULT_AGENT = text("A2A_DEFAULT_AGENT", "echo")
"""The agent that answers at `/jsonrpc`."""
A2A_AGENT_MODULES = names("A2A_AGENT_MODULES")
"""Further modules with agents. Each module defines or imports an agent."""
A2A_AGENTS_DIR = text("A2A_AGENTS_DIR")
"""A folder of modules with agents. All its modules are imported."""
A2A_LEASE_SECONDS = number("A2A_LEASE_SECONDS", 30, 0.5)
"""The time of silence after which a worker loses its tasks."""
A2A_SWEEP_SECONDS = number("A2A_SWEEP_SECONDS", 5, 0.1)
"""The time between two sweeps of a process, which look for expired leases and other work that is due."""
A2A_ASYNC_SLOTS = whole("A2A_ASYNC_SLOTS", 1000, 1)
"""Simultaneous runs of async agents in a process."""
A2A_SYNC_SLOTS = whole("A2A_SYNC_SLOTS", 8, 1)
"""Simultaneous runs in a process that need a thread each: those of sync agents and of isolated agents."""
A2A_KILL_SECONDS = number("A2A_KILL_SECONDS", 5)
"""The time between SIGTERM and SIGKILL for the process of an isolated agent."""
A2A_RELAYS = relays("A2A_RELAYS")
"""Remote A2A agents that are agents here, as `name=https://host/path`, separated by commas. The address is the base
address of the agent or that of its card. After a space come options: `timeout=3600` (seconds of an attempt),
`attempts=10` (for one message), and `resend=yes` (`no`: a message that may have arrived is not sent again)."""
LLM_BASE_URL = text("LLM_BASE_URL").rstrip("/")
"""An OpenAI-compatible chat endpoint, such as `https://host/v1`. With `LLM_MODEL` it adds the agent `llm`."""
LLM_MODEL = text("LLM_MODEL")
"""The model of the agent `llm`."""
LLM_API_KEY = text("LLM_API_KEY")
"""The API key for that endpoint, if it needs one."""

# ---------------------------------------------------------------- Fair shares

A2A_OWNER_SLOTS = number("A2A_OWNER_SLOTS", 0.5, 0, 1)
"""The share of a process's slots that one owner may have while others wait."""
A2A_OWNER_TASKS = whole("A2A_OWNER_TASKS", 5_000, 1)
"""Unfinished tasks, queued and running, of one owner. Further ones are refused with `Retry-After`. In a process, an
owner may also have this many calls that wait for longer than `A2A_PING_SECONDS`."""
A2A_AGENT_TASKS = whole("A2A_AGENT_TASKS", 10_000, 1)
"""Unfinished tasks of one agent. Further ones are refused with `Retry-After`."""
A2A_TASKS = whole("A2A_TASKS", 20_000, 1)
"""Unfinished tasks in total. Further ones are refused with `Retry-After`."""
A2A_TASK_CHARACTERS = whole("A2A_TASK_CHARACTERS", 10_000_000, 10_000)
"""Characters of a task's events in JSON. A message beyond them is refused with -32004, and a run that writes more fails
with a sentence that names the limit. Stored files have limits of their own."""
A2A_TASK_EVENTS = whole("A2A_TASK_EVENTS", 100_000, 10)
"""Events of a task, with the same effects as `A2A_TASK_CHARACTERS`."""
A2A_TASK_MESSAGES = whole("A2A_TASK_MESSAGES", 1_000, 1)
"""Messages of the caller to one task. Further ones are refused with -32004."""
A2A_OWNER_STREAMS = whole("A2A_OWNER_STREAMS", 2_000, 1)
"""Open streams of one owner in a process."""
A2A_STREAMS = whole("A2A_STREAMS", 10_000, 1)
"""Open streams in a process."""
A2A_OWNER_SOCKETS = whole("A2A_OWNER_SOCKETS", 1_000, 1)
"""Open WebSocket connections of one owner in a process. Further ones are refused with `Retry-After`."""
A2A_SOCKETS = whole("A2A_SOCKETS", 5_000, 1)
"""Open WebSocket connections in a process. Further ones are refused with `Retry-After`."""
A2A_OWNER_TICKETS = whole("A2A_OWNER_TICKETS", 100, 1)
"""Unused tickets for WebSocket connections of one owner. Further ones are refused with `Retry-After`."""
A2A_OWNER_READS = whole("A2A_OWNER_READS", 64, 1)
"""Waiting long reads (lists) of one owner in a process."""

# ---------------------------------------------------------------------- Calls

A2A_BODY_BYTES = whole("A2A_BODY_BYTES", 1_000_000, 1_000)
"""Bytes of a request's body."""
A2A_OWNER_BODY_BYTES = whole("A2A_OWNER_BODY_BYTES", max(16_000_000, A2A_BODY_BYTES), A2A_BODY_BYTES)
"""Bytes of large or slow requests and answers of one owner in a process. All callers without a key count as one owner.
A call beyond them is refused with `Retry-After`."""
A2A_BODIES_BYTES = whole("A2A_BODIES_BYTES", 4 * A2A_OWNER_BODY_BYTES, A2A_OWNER_BODY_BYTES)
"""Bytes of large or slow requests and answers of all owners in a process."""
A2A_BODY_SECONDS = number("A2A_BODY_SECONDS", 15, 0.1)
"""The longest time for a request's body to arrive."""
A2A_HEADER_SECONDS = number("A2A_HEADER_SECONDS", 15, 0.1)
"""The longest time for a request's head to arrive."""
A2A_WRITE_SECONDS = number("A2A_WRITE_SECONDS", 30, 0.1)
"""The time after which a connection is closed if its client has read less than 16 kB of an answer and more is
waiting."""
A2A_KEEP_ALIVE_SECONDS = whole("A2A_KEEP_ALIVE_SECONDS", 75, 1)
"""The longest time between two requests on a connection. A proxy in front should close its connections earlier, as
nginx and most others do, after 60 s."""
A2A_CONNECTIONS = whole("A2A_CONNECTIONS", 10_000, 1)
"""Connections of a process, never more than 80 % of its file descriptors. At the limit the connection that has waited
longest for a request is closed; if all are busy, a new one gets 503."""
A2A_WAIT_SECONDS = number("A2A_WAIT_SECONDS", 0)
"""The longest wait of a send, after which it answers with the task as it is. 0: it waits until the task ends or is
interrupted."""
A2A_PING_SECONDS = number("A2A_PING_SECONDS", 4, 0.1, 15)
"""The longest silence of an answer. After it a stream sends a comment, and a waiting call sends a space. The official
Python client gives up after 5 s. The key of a waiting call is checked as often, hence at most 15."""
A2A_STREAM_SECONDS = number("A2A_STREAM_SECONDS", 900, 1)
"""The longest time that a stream stays open. Its client resumes with `Last-Event-ID`."""
A2A_LINK_SECONDS = whole("A2A_LINK_SECONDS", 3600, 0, 2_592_000)
"""The longest time that a link to a task's stream is valid, and the default. 0: no links are made."""
A2A_SOCKET_CALLS = whole("A2A_SOCKET_CALLS", 64, 1)
"""Calls in flight on one WebSocket connection, besides its streams. Further ones are refused with -38008."""
A2A_SOCKET_IDLE_SECONDS = number("A2A_SOCKET_IDLE_SECONDS", 300, 1)
"""The time without a call or a stream after which a WebSocket connection is closed."""
A2A_TICKET_SECONDS = number("A2A_TICKET_SECONDS", 60, 1, 3_600)
"""The time for which a ticket opens a WebSocket connection."""
A2A_POLL_SECONDS = number("A2A_POLL_SECONDS", 2, 0.05)
"""The longest delay of a stream when a hint is lost."""
A2A_CALL_SECONDS = number("A2A_CALL_SECONDS", 10, 0.1)
"""The longest wait of a call for the database. Then it gets -38013 with `Retry-After`, and work that has not begun is
not done."""
A2A_LANE_CALLS = whole("A2A_LANE_CALLS", 2000, 1)
"""Calls of one kind (writes, reads, long reads) that may wait for the database in a process. A further call gets
-38013."""
A2A_READ_CONNECTIONS = whole("A2A_READ_CONNECTIONS", 3, 2)
"""Database connections of a process for lists and other long reads. Owners take turns, and none has all of them."""
A2A_READ_SECONDS = number("A2A_READ_SECONDS", 5, 0.1)
"""The longest time of one statement on such a connection."""

# ------------------------------------------------------------------ Retention

A2A_KEY_HOURS = number("A2A_KEY_HOURS", 24)
"""The time for which message ids are stored. 0: not at all, so a message that is sent twice makes two tasks."""
A2A_EXCHANGE_DAYS = number("A2A_EXCHANGE_DAYS", 7)
"""The time for which exchanges are stored."""
A2A_TASK_DAYS = number("A2A_TASK_DAYS", 30)
"""The time for which tasks are stored after their end."""
A2A_QUEUE_HOURS = number("A2A_QUEUE_HOURS", 72)
"""The longest wait of a task for a worker. Then the task fails, naming its agent and queue. 0: no limit."""
A2A_ANSWER_DAYS = number("A2A_ANSWER_DAYS", 30)
"""The longest wait of a question for its answer. Then the task is canceled. 0: no limit."""

# --------------------------------------------------------- Logins of operators

A2A_LOGIN_TRIES = whole("A2A_LOGIN_TRIES", 5, 1)
"""Wrong logins as one user of the admin before a lock: 30 s, then twice as long each time, 15 minutes at most. An
address has four times as many."""
A2A_SESSION_HOURS = number("A2A_SESSION_HOURS", 12, 0.01)
"""The longest time of a login to the admin."""
A2A_SESSION_IDLE_MINUTES = number("A2A_SESSION_IDLE_MINUTES", 60, 0.1)
"""The time without a request after which a login to the admin ends."""

# ---------------------------------------------------------------------- Files

A2A_INLINE_BYTES = whole("A2A_INLINE_BYTES", 16_384)
"""The largest size of a part inside rows and answers. Larger parts are stored as files, and answers have links to
them."""
A2A_FILE_BYTES = whole("A2A_FILE_BYTES", 25_000_000, 1)
"""Bytes of one file. `A2A_BODY_BYTES` limits the parts of callers before."""
A2A_TASK_FILE_BYTES = whole("A2A_TASK_FILE_BYTES", 100_000_000, 1)
"""Bytes of all files of a task."""
A2A_FILE_URL_SECONDS = number("A2A_FILE_URL_SECONDS", 3600, 2)
"""The longest time that a link to a file is valid. It is valid for half of it at least."""
A2A_FILE_STORAGE = text("A2A_FILE_STORAGE", "django.core.files.storage.FileSystemStorage")
"""The dotted path of a Django storage. By default it is the folder `files` in `DATA_DIR`. Several processes need a
storage that all of them reach, and that stores a file under exactly the name it gets."""
A2A_FILE_STORAGE_OPTIONS = members("A2A_FILE_STORAGE_OPTIONS")
"""Options of that storage."""
_FOLDER = {"location": str(DATA_DIR / "files"), "file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "files": {
        "BACKEND": A2A_FILE_STORAGE,
        "OPTIONS": (_FOLDER if A2A_FILE_STORAGE.endswith(".FileSystemStorage") else {}) | A2A_FILE_STORAGE_OPTIONS,
    },
}

# ------------------------------------------------------------------- Webhooks

A2A_OUTBOUND_HOSTS = hosts("A2A_OUTBOUND_HOSTS")
"""Names, addresses and networks (`10.1.0.0/16`) that webhooks and relays may have although they are not public."""
A2A_OUTBOUND_LOOPBACK = flag("A2A_OUTBOUND_LOOPBACK", DEVELOPMENT)
"""Webhooks and relays may have addresses of this machine, and plain http."""
A2A_DELIVERY_SLOTS = whole("A2A_DELIVERY_SLOTS", 64, 1)
"""Simultaneous deliveries in a process: half of them for one owner, one host or one address, and 8 for one owner to one
host or one address."""
A2A_DELIVERY_HOURS = number("A2A_DELIVERY_HOURS", 72)
"""The time for which a failed delivery is tried again."""
A2A_OWNER_DELIVERY_BYTES = whole("A2A_OWNER_DELIVERY_BYTES", 67_108_864, 1)
"""Bytes of deliveries that a process sends for one owner in a minute. Further deliveries wait."""
A2A_OWNER_WEBHOOKS = whole("A2A_OWNER_WEBHOOKS", 300, 1)
"""Webhooks that one owner may register in a minute in a process, each with a call of its own. Further ones are
refused."""

# ---------------------------------------------------- Database and other processes

_DATABASE = database("DATABASE_URL", f"sqlite:///{quote(str(DATA_DIR / 'taskdesk.sqlite3'))}")
"""The address of the database, `postgres://user:password@host/name`. Without it, SQLite in `DATA_DIR`. A query sets
options of the connection, such as `?sslmode=require` or `?options=-c%20lock_timeout%3D5s`, and takes precedence over
the defaults."""
CELERY_BROKER_URL = text("CELERY_BROKER_URL")
"""The address of a broker, `redis://…` or `amqp://…`. With a broker, workers run the queued agents, and web processes
run none."""
REDIS_URL = text("REDIS_URL")
"""The address of Redis, `redis://…`, for hints between processes. With it, streams get the events of other processes at
once."""
if not text("DATABASE_URL") or DATA_DIR.is_dir():
    make_folder(DATA_DIR)
DATABASES: dict[str, Any] = {"default": _DATABASE}
if _DATABASE["ENGINE"].endswith("sqlite3"):
    _DATABASE["OPTIONS"] = sqlite_options()
    make_private_file(str(_DATABASE["NAME"]))
    # A file and not memory: lanes are threads, and servers in tests are processes of their own.
    _DATABASE["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
else:
    _DATABASE["OPTIONS"] = postgres_options(_DATABASE.get("OPTIONS", {}), A2A_LEASE_SECONDS)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CHANNEL_LAYERS: dict[str, Any] = {}
if REDIS_URL:
    CHANNEL_LAYERS["default"] = {
        # Not the core layer: after a flush of Redis it receives nothing any more, without an error.
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_keepalive": True}], "prefix": "taskdesk"},
    }

# ------------------------------------------------------------------- Django

INSTALLED_APPS = [
    "tasks_app",  # before django.contrib.staticfiles, for its runserver
    "config.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "channels",
]
MIDDLEWARE = [
    "tasks_app.transports.headers.pages",
    "django.middleware.security.SecurityMiddleware",
    "tasks_app.asgi.static.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "tasks_app.operators.visits.Visits",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
LEAN_MIDDLEWARE: list[str] = []
"""Middleware of the protocol's paths. All of it must be async."""
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
CELERY_APPLICATION = "config.celery.app"
"""The Celery application. Only processes that run agents or wake workers import it, so that commands start fast."""
APPEND_SLASH = False
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
AUTHENTICATION_BACKENDS = ["tasks_app.operators.logins.Throttle", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "tasks_app.operators.logins.VariedPassword"},
]
SESSION_COOKIE_AGE = int(A2A_SESSION_HOURS * 3600)
STATIC_URL = "static/"
STATICFILES_DIRS = [ROOT / "templates" / "static"]
WHITENOISE_USE_FINDERS = True
"""Static files are served from the installed packages, so collectstatic is not needed."""
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
DATETIME_FORMAT, DATE_FORMAT, TIME_FORMAT = "Y-m-d H:i:s", "Y-m-d", "H:i:s"
"""The form of all times in the admin, in UTC."""
DATA_UPLOAD_MAX_MEMORY_SIZE = A2A_BODY_BYTES
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Strict"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not DEVELOPMENT
CSRF_TRUSTED_ORIGINS = ["://".join(urlsplit(A2A_PUBLIC_URL)[:2])] if A2A_PUBLIC_URL else []
"""Origins of forms. Behind a proxy with TLS a form comes from https, although the request arrives over http."""
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_HSTS_SECONDS = 31_536_000 if A2A_PUBLIC_URL.startswith("https:") else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if A2A_TRUST_FORWARDED == "x-forwarded" else None
SECURE_SSL_REDIRECT = bool(SECURE_HSTS_SECONDS and SECURE_PROXY_SSL_HEADER)
SILENCED_SYSTEM_CHECKS = [
    # No includeSubDomains and no preload: other names of the domain may belong to other servers.
    "security.W005",
    "security.W021",
    # Only with a trusted X-Forwarded-Proto do we know about TLS. Any other proxy has to redirect by itself.
    *([] if SECURE_SSL_REDIRECT or not SECURE_HSTS_SECONDS else ["security.W008"]),
]
LOGGING = logging_options(LOG_LEVEL)
