"""The requirements of the five systems that Taskdesk serves, each in one sentence.

A test that holds a requirement names it in the marker `requirement`. docs/systems/requirements.md lists the tests of
each requirement: tests/seeds/table.py makes it.
"""

from typing import NamedTuple


class Requirement(NamedTuple):
    """A requirement of a system."""

    text: str
    deviation: str = ""
    """The reason why it is not held as the system says it; empty if it is."""


def rows(prefix: str, *texts: str | Requirement) -> dict[str, Requirement]:
    """Return the requirements of a system by their ids, which are numbered from 1."""
    requirements = (Requirement(text) if isinstance(text, str) else text for text in texts)
    return {f"{prefix}-{number:02}": requirement for number, requirement in enumerate(requirements, 1)}


ZONE = rows(
    "ZONE",
    "A request has `jsonrpc`, `method`, `params` and `id`.",
    "A response has `jsonrpc`, `id`, and either a result or an error, never both.",
    "A body that is not JSON gets -32700 with the id null.",
    "A value without a method or without an id is no request, and gets -32600.",
    "An unknown method gets -32601, and wrong params get -32602 with the reason.",
    "A timeout and a fault of the server are error objects of one form.",
    "The id of a response is that of its request, in the same type.",
    "An end user sees safe texts only, without code, paths or traces.",
    "There is a method that executes a task, with a contract that is documented.",
    "The contract holds over any transport.",
    "There is one documented pattern for work that takes long: accepted, a task id, and polling.",
    "An operator finds each request with its response by its id.",
    "The protocol loses no calls and adds little time.",
    "Identity, rights and limits are checked before an agent is called.",
    "The method that executes a task takes a channel, a text and a token, and gives a status, a text and the id of the "
    "correlation.",
    "The card of an agent can be asked for by a method.",
    "A record that fails never fails its answer.",
    "Refused calls are recorded without their content.",
    "Records are found by their correlation id, by channel and by date in less than half a second.",
    "Records are deleted when their time has come, and content lives apart from the index.",
    "Secrets in params are never stored.",
    "The registry of agents is read again without a restart.",
)
ADR = rows(
    "ADR",
    "`GET /card` gives the card of the agent.",
    "`POST /negotiate` takes capabilities and a budget, and gives an agreement, a degradation or a refusal.",
    "`POST /invoke` takes a call of JSON-RPC.",
    "`POST /invoke/stream` answers with server-sent events, token by token.",
    "`GET /healthz` says that the server is well.",
    "A call has a time limit, which each agent may set.",
    "A client repeats a call three times, with growing pauses, after a status of 5xx or a timeout only.",
    "Each call has the header `X-Request-ID`, and a repeated one gets the same answer.",
    "A call whose header `X-Budget-USD` is below the least that the agent may cost is refused.",
    "Errors have the codes of ADR-002, and their reason in `data.reason`.",
    "Callers are service accounts of OpenID Connect, whose audience and subject are checked.",
    "Cards are signed, and have a version.",
    "A body has a megabyte at most, and a text no more tokens than the agent takes.",
    "There is a library for clients and servers.",
    "Messages have JSON Schemas, which contract tests use.",
    "Answers and log lines name the request and the agent, and there are metrics of latency and errors.",
    Requirement(
        "gRPC may come later.",
        "ADR-002 leaves it open, and the server has no gRPC door yet",
    ),
    "The card tells limits, privacy, the way to authenticate, and what can be degraded.",
    "A budget that is exceeded is status 402, a wrong request is 400, and a stream has comments while it waits.",
)
ACP = rows(
    "ACP",
    "Everything is one `POST /jsonrpc` of `application/json`.",
    "Only HTTPS is served, with TLS 1.2 or later.",
    "The schema of requests is closed, with ten methods.",
    "A response has an id, and either a result or an error.",
    "A request without an id is a notification: its work is done, and it gets no body.",
    "Tasks are created, continued, read, canceled and subscribed to.",
    "Streams of several participants are started, written to and ended.",
    "`task.notification` and `stream.chunk` are taken in and sent out.",
    "A result says its type, and wraps the value in a member of that name.",
    "Errors of the protocol have the codes from -40001 to -40009.",
    "The data of an error say what to do.",
    "No error shows internals of the server.",
    "Each call has a bearer token of OAuth 2.0, by client credentials or by an authorization code.",
    "Seven scopes allow the methods, and that of identity is needed by each.",
    "Errors of authentication name the scopes that are required and provided, and where tokens come from.",
    "Answers may come in any order, and are matched by their ids.",
    "Calls may come in a batch.",
    "Each authenticated call is in the audit, without secrets.",
    "Callers have rate limits, tokens can be described to their clients, and certificates may identify a caller.",
    "A client keeps its token, renews it 300 seconds before its end, and has a time limit for each kind of method.",
    "A task has a priority, and may be assigned to an agent.",
    "Six states in upper case; a canceled task may be canceled again, a completed or failed one may not.",
    "Webhooks choose their events, are signed, and are repeated with growing pauses.",
    "A stream is active, paused or closed, and its chunks have a sequence and a last one.",
    "A task is read with or without its messages and artifacts.",
    "There is a health page, a card in the form of ACP, and commands for the schema, cards and requests.",
)
VAPORA = rows(
    "VAPORA",
    "Domain errors have types, and are converted to the protocol at the edge only.",
    "Each of VAPORA's domain errors has a class.",
    "Domain errors have the code -32000, all others the codes of JSON-RPC.",
    "The HTTP status of an answer goes with its error, such as 404 for a task that is not there.",
    "Errors of the client have types, among them a timeout, a refused connection and an invalid response.",
    "An error is logged with the task, the operation and the details.",
    "There are counters for operations of the database and of the broker.",
    "The client repeats with growing pauses of a fifth more or less, after faults of the server and the network only.",
    "There are four kinds of tests: of domain errors, of their conversion, of client and server, and of the "
    "specification.",
    "The documentation of errors is kept with the code.",
    Requirement(
        "Service retries, trends and alerts may come later.",
        "VAPORA leaves it open; an agent's attempts are retried, operators see counts, and there are rules for alerts",
    ),
    "Tasks outlive restarts, and a broker that is down does not stop the server.",
)
SPARC = rows(
    "SPARC",
    "The wire is that of A2A 0.2.9: `kind`, `final` and `agent.json`.",
    "A message is answered with a message or a task.",
    "A streamed message is answered with server-sent events that have names.",
    "Tasks are read, canceled and followed, by `id` or `taskId`.",
    "Tasks are listed, by state and up to a limit.",
    "Webhooks are set and read, inside or outside a `config`.",
    "The phase of a workflow is set without skipping one.",
    "A batch of tools runs many at a time.",
    "Memory is stored in namespaces with a time to live, and read back.",
    "An invalid request and an unknown task have a code and a `data` object.",
    "Callers use bearer tokens or `X-API-Key`; browsers may call; each client has limits.",
    "Rights may be given by agent, phase, resource and batch operation.",
    "Input is validated, output is encoded, and calls are audited.",
    "The card, sends, streams and reads are answered in fractions of a second.",
    "A server carries a hundred streams and a thousand requests a second.",
    "A server takes less than 512 MB of memory.",
    "A workflow routes by phase, and shares state and data.",
    "Each agent has a WebSocket, with JSON-RPC inside.",
    Requirement("gRPC is optional.", "JSON-RPC, REST and WebSocket carry all methods, and there is no gRPC door"),
    "`GET /health` gives a status, a version, an uptime and metrics.",
    "`GET /metrics` gives JSON where that is asked for.",
    "Profiles have defaults for pings, times and concurrency.",
)
SYSTEMS = {"ACP": ACP, "ADR-002": ADR, "VAPORA": VAPORA, "Zones": ZONE, "SPARC": SPARC}
ALL: dict[str, Requirement] = {name: row for system in SYSTEMS.values() for name, row in system.items()}
OPEN = {*ZONE, *SPARC}
"""The requirements that may be without a test."""
