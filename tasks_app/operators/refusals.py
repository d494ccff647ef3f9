"""The refusal of an operator's act."""


class ActRefused(Exception):
    """Raised for an act that cannot be done. The sentence says why, and what to do."""

    def __init__(self, sentence: str, member: str = "") -> None:
        super().__init__(sentence)
        self.member = member
        """The member of the body that is wrong, in the operators' API; empty if it is the state of the row."""
