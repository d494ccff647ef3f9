"""Parameters of requests to the OAuth server: unknown and empty ones, ones given twice, and queries badly encoded."""

import httpx
import pytest

from tests.oauth.browser import Browser
from tests.oauth.conftest import REDIRECT, Site, post
from tests.oauth.flows import address, code, exchange, query_of, refused

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.storage
@pytest.mark.parametrize("name", ["refresh_token_instance", "client", "user", "scopes", "extra_credentials"])
def test_a_parameter_that_no_rule_names_is_ignored(site: Site, browser: Browser, name: str) -> None:
    assert site.form("robot", "/oauth2/token", grant_type="client_credentials", **{name: "x"}).status_code == 200
    assert exchange(site, code(site, browser), **{name: "x"}).status_code == 200


def test_a_parameter_without_a_value_counts_as_left_out(site: Site, browser: Browser) -> None:
    answer = site.form("robot", "/oauth2/token", grant_type="client_credentials", scope="", resource="")
    assert (answer.status_code, answer.json()["scope"]) == (200, "tasks:read tasks:write")
    assert "code" in query_of(browser.approve(str(httpx.URL(address(site)).copy_merge_params({"scope": ""}))))


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("token", "grant_type=client_credentials&grant_type=client_credentials"),
        ("token", "grant_type=client_credentials&scope=tasks:read&scope=tasks:write"),
        ("token", "grant_type=refresh_token&refresh_token=a&refresh_token=b"),
        ("revoke", "token=a&token=b"),
        ("introspect", "token=a&token=b"),
    ],
)
def test_a_form_with_a_parameter_twice_is_refused(site: Site, path: str, form: str) -> None:
    robot = site.programs["robot"]
    answer = post(f"{site.url}/oauth2/{path}", content=form, headers=FORM, auth=(robot.id, robot.secret))
    assert refused(answer) == (400, "invalid_request")


@pytest.mark.parametrize("path", ["token", "revoke", "introspect"])
def test_a_form_with_too_many_fields_is_refused_in_json(site: Site, path: str) -> None:
    robot = site.programs["robot"]
    form = "&".join(f"f{number}=x" for number in range(1001))
    answer = post(f"{site.url}/oauth2/{path}", content=form, headers=FORM, auth=(robot.id, robot.secret))
    assert refused(answer) == (400, "invalid_request")
    assert answer.json()["error_description"] == "The form has more than 1000 fields."


def test_several_resources_are_no_repetition(site: Site) -> None:
    robot = site.programs["robot"]
    form = f"grant_type=client_credentials&resource={site.url}&resource={site.url}/agents/echo"
    answer = post(f"{site.url}/oauth2/token", content=form, headers=FORM, auth=(robot.id, robot.secret))
    assert answer.status_code == 200, answer.text


def test_a_challenge_that_is_given_twice_returns_with_an_error(site: Site, browser: Browser) -> None:
    answer = browser.approve(f"{address(site)}&code_challenge={'x' * 43}")
    assert query_of(answer)["error"] == "invalid_request"
    assert answer.headers["Location"].startswith(REDIRECT)


@pytest.mark.parametrize("path", ["token", "revoke", "introspect"])
def test_a_query_that_is_badly_encoded_is_refused_like_any_other(site: Site, path: str) -> None:
    assert refused(post(f"{site.url}/oauth2/{path}?x=%zz", data={"token": "x"})) == (400, "invalid_request")


@pytest.mark.parametrize("query", ["&x=%zz", "&%zz=1", "&x", "&&", "&=1"])
def test_a_badly_encoded_parameter_does_not_keep_the_page_away(site: Site, browser: Browser, query: str) -> None:
    assert "code" in query_of(browser.approve(address(site) + query))


@pytest.mark.parametrize("mode", ["fragment", "form_post", "other"])
@pytest.mark.parametrize("more", ["", "&code_challenge_method=plain"])
def test_an_answer_is_in_the_query_alone(site: Site, browser: Browser, mode: str, more: str) -> None:
    answer = browser.approve(f"{address(site)}&response_mode={mode}{more}")
    assert query_of(answer)["error"] == "invalid_request"
    assert answer.headers["Location"].count("iss=") == 1
    assert "#" not in answer.headers["Location"]


def test_a_client_may_ask_for_the_query(site: Site, browser: Browser) -> None:
    assert "code" in query_of(browser.approve(f"{address(site)}&response_mode=query"))


@pytest.mark.parametrize("state", [" a", "a ", "a  b+%", "<&\"'>", "x" * 2_000])
@pytest.mark.parametrize("allow", [True, False])
def test_a_state_returns_character_by_character(site: Site, browser: Browser, state: str, allow: bool) -> None:
    url = str(httpx.URL(address(site)).copy_merge_params({"state": state}))
    assert query_of(browser.approve(url, allow=allow))["state"] == state
