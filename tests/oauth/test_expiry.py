"""The deletion of expired codes and tokens in sweeps, also of clients that ask for no more."""

import pytest

from tests.oauth.browser import Browser
from tests.oauth.conftest import Site
from tests.oauth.flows import code, exchange, refresh

pytestmark = pytest.mark.storage
SWEEP = """
import django
django.setup()
from oauth2_provider.models import AccessToken, Grant, RefreshToken
from tasks_app.upkeep import expired_tokens
expired_tokens.ROWS, expired_tokens.STEPS, client = 2, 3, {client}
counts = [[table.objects.count() for table in (Grant, RefreshToken, AccessToken)]]
sweep = expired_tokens.ExpiredTokens()
while not sweep.rests:
    sweep.advance()
    counts.append([table.objects.count() for table in (Grant, RefreshToken, AccessToken)])
steps = [sum(before) - sum(after) for before, after in zip(counts, counts[1:])]
left = [table.objects.filter(application=client).count() for table in (Grant, RefreshToken, AccessToken)]
print(max(steps) <= 6, *left)
"""


def test_expired_rows_of_a_client_that_asks_no_more_are_deleted(site: Site, browser: Browser) -> None:
    pk = site.programs["distant"].pk
    for _ in range(3):
        first = exchange(site, code(site, browser, "distant"), "distant").json()
        refresh(site, first["refresh_token"], "distant")
        code(site, browser, "distant")
    age(site, pk)
    valid = exchange(site, code(site, browser), "app").json()
    assert site.script(SWEEP.format(client=pk)).split() == ["True", "0", "0", "0"]
    assert refresh(site, valid["refresh_token"]).status_code == 200


def age(site: Site, client: int) -> None:
    """Let everything of a client be of long ago."""
    long_ago = "2020-01-01 00:00:00" + ("+00" if "://" in site.server.database else "")
    for table, column in (("accesstoken", "expires"), ("grant", "expires"), ("refreshtoken", "revoked")):
        site.server.execute(
            f"update oauth2_provider_{table} set {column} = '{long_ago}' "  # noqa: S608
            f"where application_id = {client} and {column} is not null"
        )
