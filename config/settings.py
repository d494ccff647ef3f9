"""Every setting, read from the environment here and nowhere else, with the typed readers of environment.py."""

from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from config.environment import (
    address,
    database,
    flag,
    given,
    hosts,
    kept_secret,
    level,
    long_secret,
    make_folder,
    members,
    names,
    networks,
    number,
    private_file,
    read_env_file,
    text,
    whole,
)

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT if (ROOT / "manage.py").exists() else Path.cwd()
"""The folder of the clone; of an installed package, the one where its command is called."""
A2A_ENV_FILE = given("A2A_ENV_FILE", str(PROJECT / ".env"))
"""A file with settings of a development server; empty: none."""
if A2A_ENV_FILE:
    read_env_file(Path(A2A_ENV_FILE))


# ------------------------------------------------------------ where and how

DATA_DIR = Path(text("DATA_DIR", str(PROJECT / ".data"))).absolute()
HOST = address("HOST", "127.0.0.1")
PORT = whole("PORT", 8000, 1, 65_535)
DEBUG = flag("DEBUG")
DEVELOPMENT = not text("SECRET_KEY")
"""Without a SECRET_KEY this is a development server: one made up and kept in DATA_DIR, loopback only."""
LOG_LEVEL = level("LOG_LEVEL", "INFO")
SECRET_KEY = long_secret() or kept_secret(make_folder(DATA_DIR) / "secret.key")
SECRET_KEY_FALLBACKS = names("SECRET_KEY_FALLBACKS")
"""Former values of SECRET_KEY: what they sealed can still be read, and API keys of that time work."""
ALLOWED_HOSTS = names("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1],testserver" if DEVELOPMENT else "")
DEV_KEY = text("DEV_KEY")
"""An API key that a development server accepts besides its own."""

# ------------------------------------------------------------------- limits

A2A_PUBLIC_URL = text("A2A_PUBLIC_URL").rstrip("/")
"""The address that cards give out; empty: the address of the request."""
A2A_TRUST_FORWARDED = text("A2A_TRUST_FORWARDED").lower()
"""Which headers of a proxy in front say where the request came in; empty: none."""
if A2A_TRUST_FORWARDED not in {"", "x-forwarded", "forwarded"}:
    raise ImproperlyConfigured(f"A2A_TRUST_FORWARDED must be x-forwarded or forwarded, not {A2A_TRUST_FORWARDED!r}")
A2A_TRUSTED_PROXIES = networks("A2A_TRUSTED_PROXIES")
"""Proxies in front that are believed when they say which address a call came from."""
A2A_CARD_KEY = text("A2A_CARD_KEY").replace("\\n", "\n")
"""PEM: the first key signs cards, all are published. Line ends may be written as in one line of a shell."""
A2A_PROVIDER = text("A2A_PROVIDER")
A2A_PROVIDER_URL = text("A2A_PROVIDER_URL")
A2A_DOCUMENTATION_URL = text("A2A_DOCUMENTATION_URL")
A2A_ICON_URL = text("A2A_ICON_URL")
A2A_DEFAULT_AGENT = text("A2A_DEFAULT_AGENT", "echo")
A2A_PUSH = flag("A2A_PUSH", True)
"""Callers may register webhooks. What was registered before it is switched off is still told."""
A2A_STREAMING = flag("A2A_STREAMING", True)
"""Callers may stream and subscribe."""
A2A_EXTENDED_CARD = flag("A2A_EXTENDED_CARD", True)
"""Callers may ask for the card with all that their scopes allow."""
A2A_FRONT_PAGE = flag("A2A_FRONT_PAGE", True)
"""Browsers get a page at /: the public agents, and how to call them."""
A2A_AGENT_MODULES = names("A2A_AGENT_MODULES")
A2A_AGENTS_DIR = text("A2A_AGENTS_DIR")
"""A folder of which every module is imported for its agents; empty: none."""
A2A_LOG_CALLS = flag("A2A_LOG_CALLS", DEVELOPMENT)
"""A line for each call, with its method, status and duration."""
A2A_WAIT_SECONDS = number("A2A_WAIT_SECONDS", 0)
"""How long a waiting send waits before it answers with the task as it is; 0: until the task ends or asks back."""
A2A_LEASE_SECONDS = number("A2A_LEASE_SECONDS", 30, 0.5)
"""A worker that does not renew its lease for so long has lost its task."""
A2A_SWEEP_SECONDS = number("A2A_SWEEP_SECONDS", 5, 0.1)
A2A_GRACE_SECONDS = number("A2A_GRACE_SECONDS", 2 if DEVELOPMENT else 25)
"""How long running agents may go on after the order to stop."""
A2A_KILL_SECONDS = number("A2A_KILL_SECONDS", 5)
"""How long an agent in a process of its own may tidy up when it is stopped; then the process is killed."""
A2A_HELPLESS_SECONDS = number("A2A_HELPLESS_SECONDS", 0 if DEVELOPMENT else 60)
"""A process whose threads all hang beyond their time for so long ends, to be started anew; 0: it only says so."""
A2A_ASYNC_SLOTS = whole("A2A_ASYNC_SLOTS", 1000, 1)
A2A_SYNC_SLOTS = whole("A2A_SYNC_SLOTS", 8, 1)
A2A_OWNER_SLOTS = number("A2A_OWNER_SLOTS", 0.5, 0, 1)
"""The share of a process's slots that one owner may have while others wait."""
A2A_OWNER_TASKS = whole("A2A_OWNER_TASKS", 5_000, 1)
"""Unfinished tasks, queued and running, that one owner may have; beyond them a send is refused."""
A2A_AGENT_TASKS = whole("A2A_AGENT_TASKS", 10_000, 1)
"""Unfinished tasks of one agent."""
A2A_TASKS = whole("A2A_TASKS", 20_000, 1)
"""Unfinished tasks in all."""
A2A_TASK_CHARACTERS = whole("A2A_TASK_CHARACTERS", 10_000_000, 10_000)
"""Characters of a task's events in JSON: a message beyond them is refused, and a run that writes more fails."""
A2A_TASK_EVENTS = whole("A2A_TASK_EVENTS", 100_000, 10)
A2A_TASK_MESSAGES = whole("A2A_TASK_MESSAGES", 1_000, 1)
"""Messages that a caller may send to one task."""
A2A_OWNER_STREAMS = whole("A2A_OWNER_STREAMS", 2_000, 1)
"""Streams that one owner may have open in a process."""
A2A_STREAMS = whole("A2A_STREAMS", 10_000, 1)
"""Streams that may be open in a process."""
A2A_BODY_BYTES = whole("A2A_BODY_BYTES", 1_000_000, 1_000)
A2A_OWNER_BODY_BYTES = whole("A2A_OWNER_BODY_BYTES", max(16_000_000, A2A_BODY_BYTES), A2A_BODY_BYTES)
"""Bytes of large or slow bodies of one owner that a process holds; all strangers together count as one."""
A2A_BODIES_BYTES = whole("A2A_BODIES_BYTES", 4 * A2A_OWNER_BODY_BYTES, A2A_OWNER_BODY_BYTES)
"""Bytes of large or slow bodies of all owners together that a process holds."""
A2A_BODY_SECONDS = number("A2A_BODY_SECONDS", 15, 0.1)
"""A request whose body takes longer to arrive is given up."""
A2A_HEADER_SECONDS = number("A2A_HEADER_SECONDS", 15, 0.1)
A2A_WRITE_SECONDS = number("A2A_WRITE_SECONDS", 30, 0.1)
"""A client that reads next to nothing of its answer for so long is cut."""
A2A_KEEP_ALIVE_SECONDS = whole("A2A_KEEP_ALIVE_SECONDS", 75, 1)
"""How long a connection stays open between two requests: longer than proxies keep theirs, which is 60 s."""
A2A_CONNECTIONS = whole("A2A_CONNECTIONS", 10_000, 1)
"""Connections at the same time in a process; never more than 80 % of its file descriptors."""
A2A_STREAM_SECONDS = number("A2A_STREAM_SECONDS", 900, 1)
"""The longest a stream stays open; its client comes back with Last-Event-ID."""
A2A_CALL_SECONDS = number("A2A_CALL_SECONDS", 10, 0.1)
"""How long a call waits for the database; then it is told to come again."""
A2A_LANE_CALLS = whole("A2A_LANE_CALLS", 2000, 1)
"""Calls of one kind that may wait for the database in a process; more are told to come again at once."""
A2A_READ_CONNECTIONS = whole("A2A_READ_CONNECTIONS", 3, 2)
"""Connections of a process for lists and other reads that may take long; no owner has all of them."""
A2A_READ_SECONDS = number("A2A_READ_SECONDS", 5, 0.1)
"""How long a statement may take on one of those."""
A2A_OWNER_READS = whole("A2A_OWNER_READS", 64, 1)
"""Such reads of one owner that may wait in a process."""
A2A_POLL_SECONDS = number("A2A_POLL_SECONDS", 2, 0.05)
"""How late a stream may be when a hint was lost, or came about in another process."""
A2A_PING_SECONDS = number("A2A_PING_SECONDS", 4, 0.1)
"""The longest silence of an answer: then a stream has a comment, and a call that waits has a space."""
A2A_KEY_HOURS = number("A2A_KEY_HOURS", 24)
"""How long a message id is remembered, so that a message sent twice is one; 0: two messages may share an id."""
A2A_EXCHANGE_DAYS = number("A2A_EXCHANGE_DAYS", 7)
A2A_TASK_DAYS = number("A2A_TASK_DAYS", 30)
A2A_QUEUE_HOURS = number("A2A_QUEUE_HOURS", 72)
"""How long a task may wait for a worker before it fails; 0: for ever."""
A2A_ANSWER_DAYS = number("A2A_ANSWER_DAYS", 30)
"""How long an agent's question may wait for an answer before its task is canceled; 0: for ever."""

# ------------------------------------------------------- logins of operators

A2A_LOGIN_TRIES = whole("A2A_LOGIN_TRIES", 5, 1)
"""Wrong logins as one user after which the next has to wait; an address has four times as many."""
A2A_SESSION_HOURS = number("A2A_SESSION_HOURS", 12, 0.01)
"""How long a login to the admin holds."""
A2A_SESSION_IDLE_MINUTES = number("A2A_SESSION_IDLE_MINUTES", 60, 0.1)
"""How long it holds when nothing is done."""

# -------------------------------------------------------------------- files

A2A_INLINE_BYTES = whole("A2A_INLINE_BYTES", 16_384)
"""Bytes of a part that stay in the rows and in answers; larger ones are stored apart and answered as a link."""
A2A_FILE_BYTES = whole("A2A_FILE_BYTES", 25_000_000, 1)
A2A_TASK_FILE_BYTES = whole("A2A_TASK_FILE_BYTES", 100_000_000, 1)
A2A_FILE_URL_SECONDS = number("A2A_FILE_URL_SECONDS", 3600, 2)
"""The longest that a link to a file holds; at least half of it."""
A2A_FILE_STORAGE = text("A2A_FILE_STORAGE", "django.core.files.storage.FileSystemStorage")
A2A_FILE_STORAGE_OPTIONS = members("A2A_FILE_STORAGE_OPTIONS")
_FOLDER = {"location": str(DATA_DIR / "files"), "file_permissions_mode": 0o600, "directory_permissions_mode": 0o700}
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "files": {
        "BACKEND": A2A_FILE_STORAGE,
        "OPTIONS": (_FOLDER if A2A_FILE_STORAGE.endswith(".FileSystemStorage") else {}) | A2A_FILE_STORAGE_OPTIONS,
    },
}

# ----------------------------------------------------------------- webhooks

A2A_OUTBOUND_HOSTS = hosts("A2A_OUTBOUND_HOSTS")
"""Names, addresses and networks that callers may have called although they are not of the public network."""
A2A_OUTBOUND_LOOPBACK = flag("A2A_OUTBOUND_LOOPBACK", DEVELOPMENT)
"""Callers may have this machine called, and anything without TLS: for development and tests."""
A2A_DELIVERY_SLOTS = whole("A2A_DELIVERY_SLOTS", 64, 1)
"""Deliveries at the same time in a process."""
A2A_DELIVERY_HOURS = number("A2A_DELIVERY_HOURS", 72)
"""How long a delivery that fails is tried again."""
A2A_OWNER_DELIVERY_BYTES = whole("A2A_OWNER_DELIVERY_BYTES", 67_108_864, 1)
"""Bytes of deliveries that a process sends for one owner in a minute; what is more waits."""
A2A_OWNER_WEBHOOKS = whole("A2A_OWNER_WEBHOOKS", 300, 1)
"""Webhooks that one owner may register in a minute, each with a call of its own, in a process; more are refused."""

# ----------------------------------------------------------- language model

LLM_BASE_URL = text("LLM_BASE_URL").rstrip("/")
"""The address of a chat endpoint that speaks the OpenAI wire format; with a model it makes the llm agent."""
LLM_MODEL = text("LLM_MODEL")
LLM_API_KEY = text("LLM_API_KEY")

# ----------------------------------------------------------------- database

if not text("DATABASE_URL") or DATA_DIR.is_dir():
    make_folder(DATA_DIR)
DATABASES: dict[str, Any] = {
    "default": database("DATABASE_URL", f"sqlite:///{quote(str(DATA_DIR / 'taskdesk.sqlite3'))}")
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = {
        "timeout": 20,
        # A transaction that reads and then writes cannot upgrade its snapshot; see check a2a.E001.
        "transaction_mode": "IMMEDIATE",
        "init_command": (
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; "
            "PRAGMA journal_size_limit=67108864; PRAGMA busy_timeout=20000;"
        ),
    }
    private_file(str(DATABASES["default"]["NAME"]))
    # Lanes and servers of the tests are threads and processes of their own: they need a file.
    DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "test.sqlite3")}
else:
    # Nobody is waited for in a lane (event_log/locks.py); this is for what locks a whole table, and for commands.
    # Whoever is frozen, or cut off, in a transaction keeps what it has locked for as long as a lease, during which its
    # tasks are its own anyway: then its session ends, and they are taken up. Never longer than 30 s, for its webhooks
    # and what is past its time are held with them; and never shorter than 5 s, for between two statements a large task
    # may be folded, and an operator's command may think. No statement_timeout: a migration may take its time.
    _HELD_SECONDS = min(max(A2A_LEASE_SECONDS, 5), 30)
    _LIMITS = f"-c lock_timeout=2s -c idle_in_transaction_session_timeout={_HELD_SECONDS * 1000:.0f}ms"
    _GIVEN = DATABASES["default"].get("OPTIONS", {})
    DATABASES["default"]["OPTIONS"] = {
        # Only the cursors of statements.py use it; see there.
        "prepare_threshold": 5,
        # A server whose machine has vanished says nothing: a lane would wait for its answer for hours.
        "connect_timeout": 5,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 15_000,
        **_GIVEN,
        # Of two that set the same, PostgreSQL takes the last.
        "options": f"{_LIMITS} {_GIVEN.get('options', '')}".strip(),
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# ------------------------------------------------------------- other processes

CELERY_BROKER_URL = text("CELERY_BROKER_URL")
"""Redis or RabbitMQ; with it, workers run the queued agents and web processes do not."""
REDIS_URL = text("REDIS_URL")
"""Carries hints between processes."""
CHANNEL_LAYERS: dict[str, Any] = {}
if REDIS_URL:
    CHANNEL_LAYERS["default"] = {
        # Not the core layer: after a flush of Redis that one hears nothing for ever, and does not say so.
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
    "rest_framework",
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
"""Middleware of the protocol's paths; async-native only."""
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
CELERY_APPLICATION = "config.celery.app"
"""Imported where agents are run or workers woken: no other command needs it."""
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
"""The admin's files are served from where they are installed: there is no collectstatic to forget."""
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
DATETIME_FORMAT, DATE_FORMAT, TIME_FORMAT = "Y-m-d H:i:s", "Y-m-d", "H:i:s"
"""As all other times of the admin are written, and in UTC."""
DATA_UPLOAD_MAX_MEMORY_SIZE = A2A_BODY_BYTES
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Strict"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not DEVELOPMENT
CSRF_TRUSTED_ORIGINS = ["://".join(urlsplit(A2A_PUBLIC_URL)[:2])] if A2A_PUBLIC_URL else []
"""Behind a proxy that speaks TLS forms come from https, while we are asked over http."""
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_HSTS_SECONDS = 31_536_000 if A2A_PUBLIC_URL.startswith("https:") else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if A2A_TRUST_FORWARDED == "x-forwarded" else None
SECURE_SSL_REDIRECT = bool(SECURE_HSTS_SECONDS and SECURE_PROXY_SSL_HEADER)
SILENCED_SYSTEM_CHECKS = [
    # Other names of the domain are not ours to decide about: no includeSubDomains, no preload.
    "security.W005",
    "security.W021",
    # Only a proxy whose X-Forwarded-Proto is trusted tells us about TLS; any other redirects by itself.
    *([] if SECURE_SSL_REDIRECT or not SECURE_HSTS_SECONDS else ["security.W008"]),
]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "tasks_app.masking.Line", "fmt": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "filters": {"sparing": {"()": "tasks_app.process.sparing.Sparing"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["sparing"]}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        **{name: {"level": "WARNING"} for name in ("asyncio", "celery", "httpcore", "httpx", "uvicorn")},
        # A traceback a second while Redis is away; tasks_app.hints says it once.
        "channels_redis": {"level": "CRITICAL"},
    },
}
