"""Texts of Slack, and the sentences for errors."""

import re

import pytest

from a2a import errors
from tasks_app.slack import mrkdwn
from tasks_app.slack.sentences import SENTENCES, sentence_for


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<@U0BOT> hello", "hello"),
        ("hello <@U0BOT|bot>", "hello"),
        ("tell <@U1|ada> and <@U2>", "tell @ada and @U2"),
        ("in <#C1|general>, <!here>", "in #general, @here"),
        ("<https://a.example/?a=1&amp;b=2|a page>", "a page (https://a.example/?a=1&b=2)"),
        ("<https://a.example>", "https://a.example"),
        ("1 &lt; 2 &amp;&amp; 3 &gt; 2 &amp;lt;", "1 < 2 && 3 > 2 &lt;"),
        ("", ""),
    ],
)
def test_markup_is_read_as_words(text: str, words: str) -> None:
    assert mrkdwn.read(text, "U0BOT") == words


def test_a_text_is_split_at_lines_and_words_and_loses_nothing_else() -> None:
    text = ("word " * 300 + "\n") * 10
    pieces = mrkdwn.split(text)
    assert len(pieces) > 1
    assert all(len(piece) <= mrkdwn.PIECE for piece in pieces)
    assert re.sub(r"\s+", "", "".join(pieces)) == re.sub(r"\s+", "", text)


def test_no_escaped_character_is_cut_in_half() -> None:
    text = "&" * 5_000
    pieces = mrkdwn.split(text)
    assert "".join(pieces) == "&amp;" * 5_000
    assert all(piece.endswith("&amp;") and len(piece) <= mrkdwn.PIECE for piece in pieces)


def test_a_preview_fits_a_message_and_is_not_the_end() -> None:
    assert mrkdwn.preview("short") == "short …"
    assert len(mrkdwn.preview("<" * 50_000)) <= mrkdwn.PIECE


@pytest.mark.requirement("ZONE-08")
def test_every_error_has_a_sentence_without_a_technical_word() -> None:
    assert set(SENTENCES) == set(errors.ALL)
    for kind in errors.ALL:
        sentence = sentence_for(kind(detail="/srv/app.py", reference="a1b2"))
        assert not re.search(r"[0-9{}/\\_]|JSON|RPC|HTTP|token|key|scope|param|task|Traceback|exception", sentence), (
            sentence
        )
        assert sentence[0].isupper()
        assert sentence.endswith(".")


@pytest.mark.parametrize(("seconds", "words"), [(1, "a moment"), (60, "60 seconds"), (600, "10 minutes")])
def test_a_wait_is_told_in_words(seconds: int, words: str) -> None:
    assert words in sentence_for(errors.TooManyCalls(seconds))
