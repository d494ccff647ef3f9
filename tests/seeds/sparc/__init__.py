"""A client of SPARC, written from the text of its specification alone, and its flows against a running server."""
