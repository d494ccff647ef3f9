"""The webhook method of SPARC: the webhook is in the member `config`, in that of A2A 0.2, or beside the task's id."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from a2a.dialects import v0_2
from a2a.dialects.webhook_fields import OldAuthenticationParams, OldConfigParams, require
from a2a.dialects.webhooks import decode_old_config
from a2a.params import check
from a2a.requests import CreatePushConfig

SET = "tasks/pushNotificationConfig/set"
FORMS = ("config", "pushNotificationConfig")
"""The members that may have the webhook."""


class SetParams(Struct, rename="camel"):
    task_id: str | None = None
    config: OldConfigParams | None = None
    push_notification_config: OldConfigParams | None = None
    url: str | None = None
    token: str | None = None
    authentication: OldAuthenticationParams | None = None


def decode_config(params: Any) -> CreatePushConfig:
    """Decode the params of tasks/pushNotificationConfig/set in any of the three forms. Raises InvalidParams."""
    wire = check(params, SetParams)
    task_id = require(wire.get("taskId"), "taskId")
    for name in FORMS:
        if wire.get(name) is not None:
            return CreatePushConfig(task_id=task_id, config=decode_old_config(wire[name], f"{name}."))
    require(wire.get("url"), "config")
    beside = {name: wire[name] for name in ("url", "token", "authentication") if wire.get(name) is not None}
    return CreatePushConfig(task_id=task_id, config=decode_old_config(beside, ""))


METHODS = {SET: replace(v0_2.DIALECT.methods[SET], decode=decode_config, params=SetParams)}
"""The method whose params differ from those of A2A 0.2."""
