r"""The protocol, pure Python: no Django, no I/O, no clock. Here is the picture of the whole.

    bytes                                                                      bytes
      |                                                                          ^
      v                                                                          |
    DOOR (tasks_app/transports)           builds a neutral Call; limits; one catch; records the EXCHANGE
      |                                                                          |
      v                                                                          |
    ENVELOPE, LANGUAGE (a2a/envelopes, a2a/dialects)   decode params ..... encode answers
      |                                                                          ^
      v                                                                          |
    REQUEST (a2a/requests.py)                                       ANSWER (a2a/answers.py)
      |                                                                          ^
      v                                                                          |
    OPERATION (tasks_app/operations)      a coroutine that awaits WORK ITEMS; its outcome is Done, Wait or Follow,
      |                                   and the dispatcher alone waits         |
      v                                                                          |
    LANES (tasks_app/database)            do work items of one class in groups   |
      |                                                                          |
      v                                                                          |
    EVENT LOG (tasks_app/event_log)       creates, appends, claims, reads:    READERS (tasks_app/event_log/readers.py)
      |       \                           the only writer of a task's state      ^   one cursor each
      |        `--> HINTS (tasks_app/hints)   "task X reached N", "look for work" |
      v                                      |                 |                 |
    TASK, EVENTS, DELIVERIES                 v                 `-----------------+
    (tasks_app/models)                    RUNNER (tasks_app/runner)   claims under a lease, lets an AGENT
                                             |                        (a2a/agents.py) work, and appends what it
                                             |                        yields as EVENTS (a2a/events.py)
                                             v
                                          SENDER (tasks_app/webhooks)   posts deliveries to webhooks
                                          UPKEEP (tasks_app/upkeep)     expired leases, expired rows

A task is the fold of its events (`events.apply`). It is stored as its last event left it: a head, a snapshot, and the
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
