"""The ASGI extensions in the scopes of our own server: what its connections offer to the handler and the doors."""

CONNECTION = "taskdesk.connection"
"""The connection of a request of HTTP itself, so that the application can note on it that its caller is known."""
COMPLETE = "taskdesk.complete"
"""A mark of a request that has arrived completely: its body can be read without waiting."""
CUT = "taskdesk.cut"
"""A function that ends the connection of an answer under way."""
DROP = "taskdesk.drop"
"""A function that drops the rest of the request. Call it when the whole answer has been sent with `Connection: close`,
in place of the last message."""
WHOLE = "taskdesk.whole"
"""A function that writes the whole answer in place of messages to the given `send`, and returns whether it could. Only
a request that has arrived completely has it."""
SOCKET = "taskdesk.socket"
"""The connection of a WebSocket itself, so that a door can set the owner of its messages."""
