"""Lets agents work on tasks, under leases. A process has one runner. The runs of an async agent share an event loop.
Runs of other agents have a thread each. `claim_all` claims runnable tasks until there are none or the slots are full. A
slot that becomes free has more claimed."""
