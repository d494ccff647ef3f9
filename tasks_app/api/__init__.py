"""The operators' API under /api/v1/: what the admin shows and does, as JSON. resources/ has a file for each resource.

Programs authenticate by a token of an operator, pages of the admin by their session. API keys of callers open nothing.
"""
