"""Zones, by a client of its specification (JSON-RPC zone connection)."""
