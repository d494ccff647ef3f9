"""Calls next to their answers: kept open, recorded, derived again, and freed of secrets."""
