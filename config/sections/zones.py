"""Zones."""

from config.environment import execution, number, text, whole

A2A_ATTACHMENT_BYTES = whole("A2A_ATTACHMENT_BYTES", 10_000_000, 1)
"""Bytes of an attachment of `execute_task`. A larger one is skipped, and the answer says so. `A2A_BODY_BYTES` limits
a call with all its contents, also where it is smaller."""
A2A_SECRET_SECONDS = number("A2A_SECRET_SECONDS", 3600, 1, 31_536_000)
"""The time for which a secret in the params of `execute_task` is there for the agent, sealed under `SECRET_KEY`."""
A2A_USAGE_DAYS = number("A2A_USAGE_DAYS", 90, 0, 36_500)
"""The time for which the usage history of zones is stored."""
A2A_EXECUTION = execution("A2A_EXECUTION")
"""Where the agent `execution` of this deployment has its tasks executed: the address of a Taskdesk server such as
`https://host`, `in-process`, `queue` (through `A2A_ZONE_QUEUE`), or `agentcore:` with the ARN of a runtime of AWS
AgentCore. Empty: the agents of this deployment alone."""
A2A_EXECUTION_AGENT = text("A2A_EXECUTION_AGENT")
"""The agent of the execution zone that executes the tasks; empty for its default. `in-process` needs one."""
A2A_EXECUTION_KEY = text("A2A_EXECUTION_KEY")
"""The API key of this deployment at the execution zone."""
A2A_EXECUTION_SECONDS = number("A2A_EXECUTION_SECONDS", 300, 1, 31_536_000)
"""The most time that the execution zone may take for a task."""
A2A_ZONE_QUEUE = text("A2A_ZONE_QUEUE")
"""The broker between the zones, as a URL of Celery such as `redis://host`. Both zones have the same."""
A2A_ZONE_SECRET = text("A2A_ZONE_SECRET")
"""The secret under which all messages between the zones over `A2A_ZONE_QUEUE` are sealed. Both zones have the same."""
