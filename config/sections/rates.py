"""Rate limits."""

from config.environment import costs, whole

A2A_ADDRESS_FAILURES = whole("A2A_ADDRESS_FAILURES", 100)
"""Wrong credentials in a minute from one address (of IPv6 its /64), in a process. Credentials that are valid only in
another network, or at the address of another agent, count as well. Further unknown ones are refused with `Retry-After`
and without a look-up; calls with a key that was valid before are not affected. 0: no limit."""
A2A_ADDRESS_CALLS = whole("A2A_ADDRESS_CALLS", 0)
"""Calls in a minute from one address (of IPv6 its /64), in a process, before anything is known of their callers. 0: no
limit."""
A2A_CALLER_RATE = whole("A2A_CALLER_RATE", 0)
"""Units of cost that one caller may spend in a minute, in all processes that share a Redis. A get costs 1, a send 10
(`A2A_OPERATION_COSTS`). Further calls are refused with `Retry-After`. `a2a limits` sets other rates for single callers
and tenants. 0: no limit."""
A2A_CALLER_BURST = whole("A2A_CALLER_BURST", 0)
"""Units of cost that one caller may spend at once. 0: those of a minute."""
A2A_OPERATION_COSTS = costs("A2A_OPERATION_COSTS")
"""Costs of operations other than their own, such as `SendMessage=5,ListTasks=1`. docs/limits.md lists them."""
