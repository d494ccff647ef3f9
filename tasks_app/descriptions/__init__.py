"""Descriptions of this server for programs, cached as bytes. a2a/descriptions makes them."""
