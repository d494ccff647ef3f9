"""Zones: the two roles of a deployment. Verification checks the caller, and execution runs agents
(docs/systems/zones.md).

`verification` asks one question for a caller, and yields the answer while it grows. With A2A_EXECUTION the agent
`execution` has its tasks executed elsewhere: `registration` defines it, `passage` passes one message on, `execution`
makes the calls, and the carrier that `choose_carrier` chooses (`https`, `in_process`, `queue`, `agentcore`) brings
their bytes there.
"""

from tasks_app.zones.registration import register as register
