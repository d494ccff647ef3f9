"""The refusal of a value that an operator gives."""


class WrongValue(ValueError):
    """Raised for a value that cannot be. The sentence says why; it begins small and has no full stop."""

    def __init__(self, member: str, sentence: str) -> None:
        super().__init__(sentence)
        self.member = member
        """The name of the value, as of the member of a body in the operators' API."""
