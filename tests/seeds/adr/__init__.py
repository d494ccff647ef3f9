"""A client of ADR-002, and its flows."""
