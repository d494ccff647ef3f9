"""Retention."""

from config.environment import flag, number

A2A_KEY_HOURS = number("A2A_KEY_HOURS", 24, 0, 876_000)
"""The time for which message ids are stored. 0: not at all, so a message that is sent twice makes two tasks, batches
are refused, and a step of a workflow, an answer in a shared stream, a question from Slack or a task of the execution
zone may run twice if a process dies or an answer is lost. Keep it above `A2A_SLACK_RETRY_HOURS` for the same reason."""
A2A_EXCHANGE_DAYS = number("A2A_EXCHANGE_DAYS", 7, 0, 36_500)
"""The time for which exchanges are stored."""
A2A_TASK_DAYS = number("A2A_TASK_DAYS", 30, 0, 36_500)
"""The time for which tasks are stored after their end."""
A2A_QUEUE_HOURS = number("A2A_QUEUE_HOURS", 72, 0, 876_000)
"""The longest wait of a task for a worker. Then the task fails, naming its agent and queue. 0: no limit."""
A2A_ANSWER_DAYS = number("A2A_ANSWER_DAYS", 30, 0, 36_500)
"""The longest wait of a question for its answer. Then the task is canceled. 0: no limit."""
A2A_AUDIT = flag("A2A_AUDIT", True)
"""Store an entry for each authenticated call that changes something. Acts of operators are always stored."""
A2A_AUDIT_DAYS = number("A2A_AUDIT_DAYS", 365, 1, 36_500)
"""The time for which entries of the audit and counts of refused calls are stored, whatever becomes of their tasks. The
database refuses to delete entries of the last 23 hours."""
