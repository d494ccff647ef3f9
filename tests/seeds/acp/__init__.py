"""A client of ACP that is written from ACP's document alone, and its flows against a running server."""
