"""Options of logging for the settings."""

from typing import Any

QUIET = (
    *("asyncio", "boto3", "botocore", "celery", "httpcore", "httpx", "kombu", "oauth2_provider", "oauthlib"),
    *("slack_bolt", "slack_sdk", "urllib3", "uvicorn"),
)
"""Libraries whose warnings are logged, and nothing below. The OAuth libraries would log codes and tokens, those of AWS
whole requests."""
FILTERS = {
    "log_throttle": "tasks_app.process.log_throttle.LogThrottle",
    "broker_losses": "tasks_app.process.broker_losses.BrokerLosses",
}
"""The filters of records on their way to the log, in their order."""


def logging_options(level: str, form: str) -> dict[str, Any]:
    """Return the options of logging: one format, one handler that limits repeated lines, quiet libraries."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {"()": "tasks_app.masking.Line", "fmt": "%(asctime)s %(levelname)s %(name)s %(message)s"},
            "json": {"()": "tasks_app.log_fields.JsonLine"},
        },
        "filters": {name: {"()": kind} for name, kind in FILTERS.items()},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": form, "filters": list(FILTERS)}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            **{name: {"level": "WARNING"} for name in QUIET},
            # It would log a traceback each second while Redis is away. tasks_app.hints logs that once.
            "channels_redis": {"level": "CRITICAL"},
        },
    }
