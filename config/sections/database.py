"""Database and other processes."""

from typing import Any
from urllib.parse import quote

from config.data_folder import make_folder, make_private_file
from config.databases import postgres_options, redis_options, sqlite_options
from config.environment import database, text
from config.sections.agents import A2A_LEASE_SECONDS
from config.sections.process import DATA_DIR

_DATABASE = database("DATABASE_URL", f"sqlite:///{quote(str(DATA_DIR / 'taskdesk.sqlite3'))}")
"""The address of the database, `postgres://user:password@host/name`. Without it, SQLite in `DATA_DIR`. A query sets
options of the connection, such as `?sslmode=require` or `?options=-c%20lock_timeout%3D5s`, and takes precedence over
the defaults."""
CELERY_BROKER_URL = text("CELERY_BROKER_URL")
"""The address of a broker, `redis://…` or `amqp://…`. With a broker, workers run the queued agents, and web processes
run none. By TLS (`rediss://…`, `amqps://…`) the broker needs a certificate for its host name from a trusted authority;
`SSL_CERT_FILE` names a file with authorities of your own."""
REDIS_URL = text("REDIS_URL")
"""The address of Redis, `redis://…`, for hints between processes and for rate limits that they share. With it, streams
get the events of other processes at once."""
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
        "CONFIG": {"hosts": [redis_options(REDIS_URL)], "prefix": "taskdesk"},
    }
