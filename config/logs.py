"""Options of logging for the settings."""

from typing import Any


def logging_options(level: str) -> dict[str, Any]:
    """Return the options of logging: one format, one handler that limits repeated lines, quiet libraries."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {"()": "tasks_app.masking.Line", "fmt": "%(asctime)s %(levelname)s %(name)s %(message)s"}
        },
        "filters": {"log_throttle": {"()": "tasks_app.process.log_throttle.LogThrottle"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["log_throttle"]}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            **{name: {"level": "WARNING"} for name in ("asyncio", "celery", "httpcore", "httpx", "uvicorn")},
            # It would log a traceback each second while Redis is away. tasks_app.hints logs that once.
            "channels_redis": {"level": "CRITICAL"},
        },
    }
