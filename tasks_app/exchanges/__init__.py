"""Calls next to their answers: open, recorded, derived from the log again, and without secrets."""
