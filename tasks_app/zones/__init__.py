"""Zones: the two roles of a deployment. Verification checks the caller, and execution runs agents
(docs/systems/zones.md).

`verification` asks one question for a caller, and yields the answer while it grows.
"""
