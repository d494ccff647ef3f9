"""The refusal of an operator's act."""


class ActRefused(Exception):
    """Raised for an act that cannot be done. The sentence says why, and what to do."""
