"""Searches of texts that others choose: their time grows with the length, because no other thread runs meanwhile."""

from typing import Any

import pytest
from django.test import RequestFactory

from a2a.errors import InvalidKey
from tasks_app.callers.certificates import LONGEST, read_certificate
from tasks_app.cards.addresses import address_of
from tasks_app.slack import mrkdwn
from tests.support.growth import is_linear


@pytest.mark.parametrize("motif", ["a", "a=", ";", "aA"])
def test_the_header_of_a_proxy_is_searched_in_linear_time(motif: str, settings: Any) -> None:
    settings.A2A_TRUST_FORWARDED = "forwarded"
    settings.A2A_PUBLIC_URL = ""

    def search(text: str) -> None:
        assert address_of(RequestFactory(headers={"forwarded": text}).get("/")) == "http://testserver"

    assert is_linear(search, motif, 16_384)


@pytest.mark.parametrize("motif", [" ", "a", "\\", "a=;", "\t "])
def test_the_header_of_a_certificate_is_searched_in_linear_time(motif: str, settings: Any) -> None:
    settings.A2A_CLIENT_CERT_HEADER = "X-Forwarded-Client-Cert"

    def search(text: str) -> None:
        for header in (f'By={text}"', f'By="{text}', text):
            with pytest.raises(InvalidKey):
                read_certificate(header)

    assert is_linear(search, motif, LONGEST - 16)


@pytest.mark.parametrize("motif", ["<", "<@", "<@a|", "<@U0BOT", "<@U0BOT|", "<https:", "<https:a|", "<!a", "a"])
def test_a_text_of_slack_is_searched_in_linear_time(motif: str) -> None:
    assert is_linear(lambda text: mrkdwn.read(text, "U0BOT"), motif, 16_384)
