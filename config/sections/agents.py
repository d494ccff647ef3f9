"""Agents."""

from config.environment import flag, folder, names, number, relays, text, whole

A2A_DEFAULT_AGENT = text("A2A_DEFAULT_AGENT", "echo")
"""The agent that answers at `/jsonrpc`."""
A2A_AGENT_MODULES = names("A2A_AGENT_MODULES")
"""Further modules with agents. Each module defines or imports an agent."""
A2A_AGENTS_DIR = folder("A2A_AGENTS_DIR")
"""A folder of modules with agents. All its modules are imported."""
A2A_AGENTS_RELOAD = flag("A2A_AGENTS_RELOAD", True)
"""Whether processes read the folder `A2A_AGENTS_DIR` again, without a restart, when its files change."""
A2A_LEASE_SECONDS = number("A2A_LEASE_SECONDS", 30, 0.5, 86_400)
"""The time of silence after which a worker loses its tasks."""
A2A_SWEEP_SECONDS = number("A2A_SWEEP_SECONDS", 5, 0.1, 86_400)
"""The time between two sweeps of a process, which look for expired leases and other work that is due."""
A2A_ASYNC_SLOTS = whole("A2A_ASYNC_SLOTS", 1000, 1)
"""Simultaneous runs of async agents in a process."""
A2A_SYNC_SLOTS = whole("A2A_SYNC_SLOTS", 8, 1)
"""Simultaneous runs in a process that need a thread each: those of sync agents and of isolated agents."""
A2A_KILL_SECONDS = number("A2A_KILL_SECONDS", 5, 0, 86_400)
"""The time between the order to stop and SIGKILL for the process of an isolated agent."""
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
