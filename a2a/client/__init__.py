"""The client: calls to any A2A agent, in any version and binding.

    async with Client("http://127.0.0.1:8000", token="...") as client:
        async for update in client.stream("A story, please"):
            print(update.text, end="", flush=True)

This is the only package in `a2a` that does input and output and reads the clock. The layers of a call:

    Client, Stream     operations; repetition and resumption          (asynchronous, systems, stream, patience, ...)
      |
    Link               one interface of an agent                      (link, cards, discovery)
      |
    ClientLanguage     requests become params, results values         (language, languages/, reading)
      |
    Transport          one attempt: JSON-RPC, REST, WebSocket         (transports/)
      |
    Http               bytes, credentials, limits; faults get names   (http, credentials, refusals, errors)
"""

from a2a.client.answers import ConfigPage, SharedStream, TaskPage, Workflow
from a2a.client.asynchronous import Client
from a2a.client.cards import ACP, ADR, REST, RPC, SOCKET, SPARC, VAPORA, ZONE
from a2a.client.conversation import Conversation
from a2a.client.credentials import ApiKey, Bearer, ClientCredentials, Credentials
from a2a.client.discovery import Trust
from a2a.client.errors import ClientError, ServerError
from a2a.client.patience import Retries, Timeouts
from a2a.client.stream import Stream
from a2a.client.synchronous import SyncClient
from a2a.client.updates import Update, text_of

__all__ = [
    "ACP",
    "ADR",
    "REST",
    "RPC",
    "SOCKET",
    "SPARC",
    "VAPORA",
    "ZONE",
    "ApiKey",
    "Bearer",
    "Client",
    "ClientCredentials",
    "ClientError",
    "ConfigPage",
    "Conversation",
    "Credentials",
    "Retries",
    "ServerError",
    "SharedStream",
    "Stream",
    "SyncClient",
    "TaskPage",
    "Timeouts",
    "Trust",
    "Update",
    "Workflow",
    "text_of",
]
