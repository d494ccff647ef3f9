r"""The A2A protocol in pure Python: no Django; no I/O and no clock but in client/.

A2A is a protocol between agents. A caller sends an agent a message, the message becomes a task, and the caller reads
the task, follows its events, cancels it, or continues it with another message. This package has the data model, the
wire languages, and the API for authors of agents. The service, tasks_app, has the database and the doors. Together:

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

A task is the fold of its events (`events.fold`). It is stored as a head with its status, a snapshot of its artifacts
and history as of one event, and the events after the snapshot. All of it is JSON of A2A 1.0, so a caller of 1.0 gets
the stored bytes. docs/glossary.md explains each word, and docs/protocol.md says what is implemented of A2A.

The modules, in an order for reading:

    The model       types, states, events, requests, answers, errors, documents (the stored form),
                    notices (kinds of changes), shared_streams (conversations)
    Its details     media (types of parts), extensions, files (references to stored bytes), sse (streams),
                    retry_after (a header of HTTP), tokens (the size of a message),
                    mismatches (values of a wrong type, in the words of JSON), literals (the values that were allowed),
                    terminals (texts of others, as a terminal may get them)
    Any language    language, params, envelopes, choice (which language a call is in), descriptions
    A2A             dialects/v1_0 (with params_1_0, cards_1_0 and errors_1_0), v0_3 (with params_0_x and cards_0_3),
                    v0_2 and rest_0_x; dialects/json (data models)
    Other systems   dialects/vapora, adr, zone, acp and sparc; workflows, batches and memory (which SPARC asks for)
                    dialects/discovery (OpenRPC's description of all methods)
    All languages   languages (their list), matrix (every error in every language)
    Agents          agents, definitions, options, run, actions, failures, inbox, drafts, scribe, acting, mistakes,
                    callers, preferences, spending, money, testing, play_memory (a memory for tests)
    Cards           cards, card_choice (the card for a caller's version), canonical (the bytes that are
                    signed), signatures
    Other agents    client: the languages the other way round, with repetition and resumption

An agent needs only the names that this module exports. Their reference is docs/agents.md.
"""

from a2a.agents import agent
from a2a.callers import Caller
from a2a.failures import BudgetSpent, Failure, Retry
from a2a.run import Run
from a2a.types import Artifact, Extension, Message, Part, Privacy, Skill

__all__ = [
    "Artifact",
    "BudgetSpent",
    "Caller",
    "Extension",
    "Failure",
    "Message",
    "Part",
    "Privacy",
    "Retry",
    "Run",
    "Skill",
    "agent",
]
