"""Taskdesk, the picture of the whole. This package is the protocol: pure Python, no Django, no I/O, no clock.

    bytes                                                                                   bytes
      |                                                                                       ^
      v                                                                                       |
    DOOR (tasks_app/transports)           who calls; limits; one catch; records the EXCHANGE  |
      |                                                                                       |
      v  ENVELOPE, LANGUAGE (a2a/envelopes, a2a/dialects)   decode params, encode answers ----+
    REQUEST (a2a/requests.py)             ACCOUNT (tasks_app/callers/account.py): has the owner room? |
      |                                                                                       |
      v                                                                                       |
    OPERATION (tasks_app/operations)      a generator: yields what it needs, returns ---------+
      |  ^                                Done, Wait or Follow; perform() alone waits         |
      v  |                                                                                    |
    BRIDGE (tasks_app/database/bridge.py)          lanes with bounds; calls that wait are done together|
      |  ^                                                                                    |
      v  |                                                                                    |
    EVENT LOG (tasks_app/event_log)       create, append, claim, read: the only writer   READERS
      |      \\                            of a task's state; rows are the truth        (a cursor each,
      v       `--> HINTS (hints/)  ------ "task X reached N", "look for work" -------->  tasks_app/
    TASK + EVENTS + DELIVERIES (models.py)             |                                 readers.py)
                                                       |--> SENDER (tasks_app/deliveries): webhooks hear of every event
                                                       v
                          DISPATCH --> jobs.wake --> RUNNER (tasks_app/runner): claims under a lease,
                          SWEEPER (what time alone must do)   lets an AGENT (a2a/agents.py) work, on a loop, in
                          RETENTION (what is past its time)   a thread or in a process of its own, and
                                                              turns what it yields into EVENTS (a2a/events.py)

A task is the fold of its events (events.apply). It is stored as its last event left it: a head, a snapshot, and the
events after the snapshot, all in the JSON of A2A 1.0, so that a 1.0 caller gets the stored bytes. Read the modules in
this order: types, states, events, requests, errors, media, extensions, sse, documents, answers, files, language,
envelopes, choice, dialects/v1_0, languages, options, agents, run, scribe, acting, testing, cards, canonical, and
signatures.

An agent needs the names below, and no others.
"""

from a2a.agents import agent
from a2a.callers import Caller
from a2a.run import Failure, Retry, Run
from a2a.types import Artifact, Extension, Message, Part, Skill

__all__ = ["Artifact", "Caller", "Extension", "Failure", "Message", "Part", "Retry", "Run", "Skill", "agent"]
