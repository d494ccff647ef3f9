"""The refusals of operators' acts, and their sentences, which are the same at each door."""

from a2a.errors import Error


class ActRefused(Exception):
    """Raised for an act that cannot be done. The sentence says why, and what to do."""

    def __init__(self, sentence: str, member: str = "") -> None:
        super().__init__(sentence)
        self.member = member
        """The member of the body that is wrong, in the operators' API; empty if it is the state of the row."""


def reason_of(error: Error) -> str:
    """Return why a task was not canceled, with its state if that is the reason, without a full stop."""
    state = error.facts.get("current")
    return f"{error.sentence}: it is {state}" if state else error.sentence


def sentence_of(error: Exception) -> str:
    """Return the sentence of an error. Errors of values begin in lower case and have no full stop."""
    text = str(error).rstrip(".")
    is_name = "_" in text.partition(" ")[0]  # a member such as per_minute, which has no capitals
    return f"{text if is_name else text[:1].upper() + text[1:]}."
