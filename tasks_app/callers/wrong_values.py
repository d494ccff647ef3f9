"""The refusal of a value that an operator gives."""


class WrongValue(ValueError):
    """Raised for a value that is not allowed. The sentence says why; it begins in lower case and has no full stop."""

    def __init__(self, member: str, sentence: str) -> None:
        super().__init__(sentence)
        self.member = member
        """The name of the value, which is that of the member of a body in the operators' API."""
