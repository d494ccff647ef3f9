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
    path,
    read_env_file,
    text,
    whole,
)

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT if (ROOT / "manage.py").exists() else Path.cwd()
"""The folder of the clone; for an installed package, the folder where its command is called."""

# ---------------------------------------------------------------- The process

A2A_ENV_FILE = path("A2A_ENV_FILE", str(PROJECT / ".env"))
"""A file with settings of a development server. Empty: none. With `SECRET_KEY` no file is read."""
if A2A_ENV_FILE:
    read_env_file(Path(A2A_ENV_FILE))
DEVELOPMENT = not text("SECRET_KEY")
"""Whether this is a development server: one without a SECRET_KEY, on loopback only."""
HOST = address("HOST", "127.0.0.1")
"""The address at which the server listens."""
PORT = whole("PORT", 8000, 1, 65_535)
"""The port at which the server listens."""
DATA_DIR = Path(text("DATA_DIR", str(PROJECT / ".data"))).absolute()
"""The folder of the SQLite file, of stored files and of secrets that a development server makes."""
DEBUG = flag("DEBUG")
"""Django's debug pages. Refused in production."""
LOG_LEVEL = level("LOG_LEVEL", "INFO")
"""The level of the log: DEBUG, INFO, WARNING, ERROR or CRITICAL."""
A2A_LOG_CALLS = flag("A2A_LOG_CALLS", DEVELOPMENT)
"""A line in the log for each call, with its method, status and duration."""
A2A_GRACE_SECONDS = number("A2A_GRACE_SECONDS", 2 if DEVELOPMENT else 25)
"""How long agents at work may go on after the order to stop."""
A2A_HELPLESS_SECONDS = number("A2A_HELPLESS_SECONDS", 0 if DEVELOPMENT else 60)
"""How long a process may be beyond help (all its threads, or eight of its event loops, hang) before it ends with exit
code 1 and the usual grace, so that a supervisor starts it again. 0: it only says so."""

# ------------------------------------------------------- Secrets and addresses

SECRET_KEY = long_secret("SECRET_KEY") or read_or_make_secret(make_folder(DATA_DIR) / "secret.key")
"""The secret that signs sessions and links, seals stored secrets and digests API keys, of 32 characters at least.
With it the server is a production; without it, a development server with a secret made up in `DATA_DIR`, on loopback
only."""
SECRET_KEY_FALLBACKS = names("SECRET_KEY_FALLBACKS")
"""Former values of `SECRET_KEY`. What they sealed can still be read, and API keys of that time work."""
ALLOWED_HOSTS = names("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1],testserver" if DEVELOPMENT else "")
"""Names by which the server is reached, for cards and the admin."""
DEV_KEY = text("DEV_KEY")
"""An API key that a development server accepts besides its own, as long as it is set; 20 characters at least."""
A2A_PUBLIC_URL = text("A2A_PUBLIC_URL").rstrip("/")
"""The address that cards give out. Empty: the request's, if its name is in `ALLOWED_HOSTS`."""
A2A_TRUST_FORWARDED = text("A2A_TRUST_FORWARDED").lower()
"""Headers of a proxy that are believed for that address: `x-forwarded` (`X-Forwarded-Proto`, `X-Forwarded-Host`) or
`forwarded` (RFC 7239). When a header has several values, the last one counts."""
if A2A_TRUST_FORWARDED not in {"", "x-forwarded", "forwarded"}:
    raise ImproperlyConfigured(f"A2A_TRUST_FORWARDED must be x-forwarded or forwarded, not {A2A_TRUST_FORWARDED!r}")
A2A_TRUSTED_PROXIES = networks("A2A_TRUSTED_PROXIES")
"""Addresses and networks of proxies (`10.1.0.0/16`) that are believed about where a call came from: by
`X-Forwarded-For`, or by `Forwarded` with `A2A_TRUST_FORWARDED=forwarded`. Empty: those headers count for nothing."""

# ---------------------------------------------------------- Cards and what is on

A2A_CARD_KEY = text("A2A_CARD_KEY").replace("\\n", "\n")
"""PEM, often as `A2A_CARD_KEY_FILE`: the first key signs cards, all keys are published. `\\n` stands for a line end."""
A2A_PROVIDER = text("A2A_PROVIDER")
"""The organisation that runs the agents, as written on every card; needs `A2A_PROVIDER_URL`."""
A2A_PROVIDER_URL = text("A2A_PROVIDER_URL")
"""The address of that organisation, as written on every card."""
A2A_DOCUMENTATION_URL = text("A2A_DOCUMENTATION_URL")
"""The address of documentation, as written on every card."""
A2A_ICON_URL = text("A2A_ICON_URL")
"""The address of an icon, as written on every card."""
A2A_PUSH = flag("A2A_PUSH", True)
"""Webhooks. When off, registering is refused with -32003, cards say so, and existing webhooks still get deliveries."""
A2A_STREAMING = flag("A2A_STREAMING", True)
"""Streams and subscriptions. When off, they are refused with -32004, and cards say so."""
A2A_EXTENDED_CARD = flag("A2A_EXTENDED_CARD", True)
"""The extended card. When off, it is refused with -32004 (0.x: -32007), and cards say so."""
A2A_FRONT_PAGE = flag("A2A_FRONT_PAGE", True)
"""A page at `/` for browsers: the public agents, and how to call them."""

# --------------------------------------------------------------------- Agents

A2A_DEFAULT_AGENT = text("A2A_DEFAULT_AGENT", "echo")
"""The agent that answers at `/jsonrpc`."""
A2A_AGENT_MODULES = names("A2A_AGENT_MODULES")
"""Further modules with agents. Each defines one or imports one."""
A2A_AGENTS_DIR = text("A2A_AGENTS_DIR")
"""A folder whose modules are all imported for their agents."""
A2A_LEASE_SECONDS = number("A2A_LEASE_SECONDS", 30, 0.5)
"""How long a worker may be silent before it loses its task."""
A2A_SWEEP_SECONDS = number("A2A_SWEEP_SECONDS", 5, 0.1)
"""How often a process looks for leases that ended and for other work that time alone brings."""
A2A_ASYNC_SLOTS = whole("A2A_ASYNC_SLOTS", 1000, 1)
"""Runs of async agents at the same time in a process."""
A2A_SYNC_SLOTS = whole("A2A_SYNC_SLOTS", 8, 1)
"""Runs at the same time in a process that take a thread each: agents that are not async, or have their own process."""
A2A_KILL_SECONDS = number("A2A_KILL_SECONDS", 5)
"""How long an agent in a process of its own may tidy up when it is stopped, before the process is killed."""
LLM_BASE_URL = text("LLM_BASE_URL").rstrip("/")
"""A chat endpoint that speaks the OpenAI wire format, such as `https://host/v1`. With `LLM_MODEL` it makes the `llm`
agent."""
LLM_MODEL = text("LLM_MODEL")
"""The model that the `llm` agent asks."""
LLM_API_KEY = text("LLM_API_KEY")
"""The key for that endpoint, if it wants one."""

# ---------------------------------------------------------------- Fair shares

A2A_OWNER_SLOTS = number("A2A_OWNER_SLOTS", 0.5, 0, 1)
"""The share of a process's slots that one owner may have while others wait."""
A2A_OWNER_TASKS = whole("A2A_OWNER_TASKS", 5_000, 1)
"""Unfinished tasks, queued and running, of one owner. A send beyond them is refused with `Retry-After`. An owner may
also have this many calls in a process that wait for longer than `A2A_PING_SECONDS`."""
A2A_AGENT_TASKS = whole("A2A_AGENT_TASKS", 10_000, 1)
"""Unfinished tasks of one agent. A send beyond them is refused with `Retry-After`."""
A2A_TASKS = whole("A2A_TASKS", 20_000, 1)
"""Unfinished tasks in all. A send beyond them is refused with `Retry-After`."""
A2A_TASK_CHARACTERS = whole("A2A_TASK_CHARACTERS", 10_000_000, 10_000)
"""Characters of a task's events in JSON. A message beyond them is refused with -32004, and a run that writes more fails
with a sentence that names the limit. Files stored apart have limits of their own."""
A2A_TASK_EVENTS = whole("A2A_TASK_EVENTS", 100_000, 10)
"""Events of a task. Beyond them messages and runs end as with `A2A_TASK_CHARACTERS`."""
A2A_TASK_MESSAGES = whole("A2A_TASK_MESSAGES", 1_000, 1)
"""Messages that a caller may send to one task. One more is refused with -32004."""
A2A_OWNER_STREAMS = whole("A2A_OWNER_STREAMS", 2_000, 1)
"""Streams that one owner may have open in a process."""
A2A_STREAMS = whole("A2A_STREAMS", 10_000, 1)
"""Streams that may be open in a process."""
A2A_OWNER_READS = whole("A2A_OWNER_READS", 64, 1)
"""Long reads (lists) of one owner that may wait in a process."""

# ---------------------------------------------------------------------- Calls

A2A_BODY_BYTES = whole("A2A_BODY_BYTES", 1_000_000, 1_000)
"""Bytes of a request's body."""
A2A_OWNER_BODY_BYTES = whole("A2A_OWNER_BODY_BYTES", max(16_000_000, A2A_BODY_BYTES), A2A_BODY_BYTES)
"""Bytes of large or slow requests and answers of one owner that a process holds; all strangers count as one owner. A
call beyond them is refused with `Retry-After`."""
A2A_BODIES_BYTES = whole("A2A_BODIES_BYTES", 4 * A2A_OWNER_BODY_BYTES, A2A_OWNER_BODY_BYTES)
"""Bytes of such requests and answers of all owners together."""
A2A_BODY_SECONDS = number("A2A_BODY_SECONDS", 15, 0.1)
"""How long a request's body may take to arrive."""
A2A_HEADER_SECONDS = number("A2A_HEADER_SECONDS", 15, 0.1)
"""How long a request's head may take to arrive."""
A2A_WRITE_SECONDS = number("A2A_WRITE_SECONDS", 30, 0.1)
"""How long a client may read less than 16 kB of its answer, while more waits, before its connection is cut."""
A2A_KEEP_ALIVE_SECONDS = whole("A2A_KEEP_ALIVE_SECONDS", 75, 1)
"""How long a connection stays open between two requests. A proxy in front should close its own before that: nginx and
most others do so after 60 s."""
A2A_CONNECTIONS = whole("A2A_CONNECTIONS", 10_000, 1)
"""Connections of a process, and never more than 80 % of its file descriptors. At the limit the connection that has
waited longest without a request is closed; while all are busy, new ones get 503."""
A2A_WAIT_SECONDS = number("A2A_WAIT_SECONDS", 0)
"""How long a waiting send waits before it answers with the task as it is. 0: until the task ends or asks back."""
A2A_PING_SECONDS = number("A2A_PING_SECONDS", 4, 0.1, 15)
"""The longest silence: after it a stream sends a comment, and an answer that is waited for sends a space. The official
Python client gives up after 5 s. A longer silence than 15 s would let a revoked key go on for as long."""
A2A_STREAM_SECONDS = number("A2A_STREAM_SECONDS", 900, 1)
"""The longest that a stream stays open. Its client resumes with `Last-Event-ID`."""
A2A_POLL_SECONDS = number("A2A_POLL_SECONDS", 2, 0.05)
"""How late a stream may be when a hint was lost."""
A2A_CALL_SECONDS = number("A2A_CALL_SECONDS", 10, 0.1)
"""How long a call waits for the database before it is told to come again (-38013, `Retry-After`). Work that had not
begun is not done."""
A2A_LANE_CALLS = whole("A2A_LANE_CALLS", 2000, 1)
"""Calls of one kind (writes, reads, long reads) that may wait for the database in a process. One more gets -38013."""
A2A_READ_CONNECTIONS = whole("A2A_READ_CONNECTIONS", 3, 2)
"""Database connections of a process for lists and other long reads. Owners take turns, and none has all of them."""
A2A_READ_SECONDS = number("A2A_READ_SECONDS", 5, 0.1)
"""How long one statement may take on such a connection."""

# ------------------------------------------------------------------ Retention

A2A_KEY_HOURS = number("A2A_KEY_HOURS", 24)
"""How long a message id is remembered. 0: not at all, so a message that is sent twice makes two tasks."""
A2A_EXCHANGE_DAYS = number("A2A_EXCHANGE_DAYS", 7)
"""How long exchanges are kept."""
A2A_TASK_DAYS = number("A2A_TASK_DAYS", 30)
"""How long tasks are kept after their end."""
A2A_QUEUE_HOURS = number("A2A_QUEUE_HOURS", 72)
"""How long a task may wait for a worker before it fails, naming its agent and queue. 0: for ever."""
A2A_ANSWER_DAYS = number("A2A_ANSWER_DAYS", 30)
"""How long an agent's question may wait for an answer before its task is canceled. 0: for ever."""

# --------------------------------------------------------- Logins of operators

A2A_LOGIN_TRIES = whole("A2A_LOGIN_TRIES", 5, 1)
"""Wrong logins as one user of the admin after which the next has to wait: 30 s, then twice as long each time, 15
minutes at most. An address has four times as many tries."""
A2A_SESSION_HOURS = number("A2A_SESSION_HOURS", 12, 0.01)
"""How long a login to the admin holds."""
A2A_SESSION_IDLE_MINUTES = number("A2A_SESSION_IDLE_MINUTES", 60, 0.1)
"""How long a login holds when nothing is done."""

# ---------------------------------------------------------------------- Files

A2A_INLINE_BYTES = whole("A2A_INLINE_BYTES", 16_384)
"""Bytes of a part that stay in rows and answers. Larger parts are stored apart and answered as a link."""
A2A_FILE_BYTES = whole("A2A_FILE_BYTES", 25_000_000, 1)
"""Bytes of one file. What callers send is bounded by `A2A_BODY_BYTES` first."""
A2A_TASK_FILE_BYTES = whole("A2A_TASK_FILE_BYTES", 100_000_000, 1)
"""Bytes of all files of a task that are stored apart."""
A2A_FILE_URL_SECONDS = number("A2A_FILE_URL_SECONDS", 3600, 2)
"""The longest that a link to a file holds; it holds for half of it at least."""
A2A_FILE_STORAGE = text("A2A_FILE_STORAGE", "django.core.files.storage.FileSystemStorage")
"""A Django storage by its dotted path; without one, the folder `files` in `DATA_DIR`. Several processes need a storage
that all of them reach, and which keeps the names that it is given."""
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
"""Names, addresses and networks (`10.1.0.0/16`) that callers may have called although they are not public."""
A2A_OUTBOUND_LOOPBACK = flag("A2A_OUTBOUND_LOOPBACK", DEVELOPMENT)
"""Callers may have this machine called, and plain http."""
A2A_DELIVERY_SLOTS = whole("A2A_DELIVERY_SLOTS", 64, 1)
"""Deliveries at the same time in a process: half of them for one owner, one host or one address, and 8 for one owner to
one host or one address."""
A2A_DELIVERY_HOURS = number("A2A_DELIVERY_HOURS", 72)
"""How long a delivery that fails is tried again."""
A2A_OWNER_DELIVERY_BYTES = whole("A2A_OWNER_DELIVERY_BYTES", 67_108_864, 1)
"""Bytes of deliveries that a process sends for one owner in a minute. Further ones wait."""
A2A_OWNER_WEBHOOKS = whole("A2A_OWNER_WEBHOOKS", 300, 1)
"""Webhooks that one owner may register in a minute in a process, each with a call of its own. One more is refused."""

# ---------------------------------------------------- Database and other processes

_DATABASE = database("DATABASE_URL", f"sqlite:///{quote(str(DATA_DIR / 'taskdesk.sqlite3'))}")
"""`postgres://user:password@host/name`; without it, SQLite in `DATA_DIR`. A query sets options of the connection,
such as `?sslmode=require` or `?options=-c%20lock_timeout%3D5s`, and wins over ours."""
CELERY_BROKER_URL = text("CELERY_BROKER_URL")
"""`redis://…` or `amqp://…`: workers run the queued agents and are woken through it; web processes run none."""
REDIS_URL = text("REDIS_URL")
"""`redis://…`: carries hints between processes, so that streams hear at once of what other processes write."""
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
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "tasks_app.masking.Line", "fmt": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "filters": {"log_throttle": {"()": "tasks_app.process.log_throttle.LogThrottle"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["log_throttle"]}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        **{name: {"level": "WARNING"} for name in ("asyncio", "celery", "httpcore", "httpx", "uvicorn")},
        # It would log a traceback each second while Redis is away. tasks_app.hints logs that once.
        "channels_redis": {"level": "CRITICAL"},
    },
}
