"""A client of VAPORA, written from the text of its ADR 0003 alone, and its flows against a running server."""
