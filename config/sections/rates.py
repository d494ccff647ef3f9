"""Rate limits."""

from config.environment import whole

A2A_ADDRESS_FAILURES = whole("A2A_ADDRESS_FAILURES", 100)
"""Wrong credentials in a minute from one address (of IPv6 its /64), in a process. Further unknown ones are refused with
`Retry-After` and without a look-up; calls with a key that was valid before are not affected. 0: no limit."""
A2A_ADDRESS_CALLS = whole("A2A_ADDRESS_CALLS", 0)
"""Calls in a minute from one address (of IPv6 its /64), in a process, before anything is known of their callers. 0: no
limit."""
