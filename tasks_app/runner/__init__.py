"""Lets agents work on tasks, under leases. One runner a process: the runs of an async agent share an event loop, those
of any other have a thread each. `claim_all` claims what is runnable until nothing is left or the slots are full; a
freed slot asks for more."""
