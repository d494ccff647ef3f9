"""Limits of callers: rate limits, budgets, the account of what is in flight, limits by network address."""
