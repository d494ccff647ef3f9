"""ACP, the Agent Communication Protocol: a language of JSON-RPC 2.0 whose methods are spelled with a dot."""
