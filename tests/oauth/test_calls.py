"""Calls with access tokens, at every door that takes credentials."""

import json
import time
from datetime import datetime
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.conftest import until
from tests.oauth.conftest import Site, get, post
from tests.support.servers import NO_TLS

pytestmark = pytest.mark.storage
SEND = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}}


def rpc(site: Site, token: str, method: str = "ListTasks", path: str = "/jsonrpc", **params: Any) -> httpx.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Authorization": f"Bearer {token}", "A2A-Version": "1.0"}
    return post(f"{site.url}{path}", json=body, headers=headers)


def expire(site: Site, seconds: float) -> None:
    """Let all access tokens end so many seconds from now."""
    on_postgres = "://" in site.server.database
    end = f"now() + interval '{seconds} s'" if on_postgres else f"datetime('now', '{seconds} seconds')"
    site.server.execute(f"update oauth2_provider_accesstoken set expires = {end}")  # noqa: S608


def test_a_token_calls_in_the_name_of_the_clients_principal(site: Site) -> None:
    reply = rpc(site, site.token()["access_token"], "SendMessage", **SEND).json()
    assert reply["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    task = reply["result"]["task"]["id"]
    assert rpc(site, site.token("reader")["access_token"], "GetTask", id=task).json()["result"]["id"] == task
    assert "error" in rpc(site, site.token("foreigner")["access_token"], "GetTask", id=task).json()


@pytest.mark.requirement("ACP-13")
def test_a_token_does_what_its_scopes_allow_and_no_more(site: Site) -> None:
    token = site.token("reader")["access_token"]
    assert "result" in rpc(site, token).json()
    error = rpc(site, token, "SendMessage", **SEND).json()["error"]
    assert "tasks:write" in json.dumps(error)
    narrow = site.token(scope="tasks:read")["access_token"]
    assert "error" in rpc(site, narrow, "SendMessage", **SEND).json()


def test_a_revoked_token_is_refused_within_moments(site: Site) -> None:
    token = site.token()["access_token"]
    assert rpc(site, token).status_code == 200
    assert site.form("robot", "/oauth2/revoke", token=token).status_code == 200
    until(lambda: rpc(site, token).status_code == 401, "the token is refused")


def test_an_expired_token_is_refused_and_its_stream_ends(site: Site) -> None:
    # On a busy machine a token may expire before its stream begins. The next one has more time.
    for seconds in (3, 20):
        token = site.token()["access_token"]
        expire(site, seconds)
        text = story(site, token)
        if text is not None:
            break
    assert text is not None
    assert "TASK_STATE_COMPLETED" not in text
    until(lambda: rpc(site, token).status_code == 401, "the token is refused")


def story(site: Site, token: str) -> str | None:
    """Return the events of a stream that would last long; None if the token is refused."""
    parts = [{"data": {"pause": 30, "words": 3}}]
    message = {"messageId": f"slow-{hash(token)}", "role": "ROLE_USER", "parts": parts}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}}
    headers = {"Authorization": f"Bearer {token}", "A2A-Version": "1.0"}
    with httpx.stream("POST", f"{site.url}/agents/story/jsonrpc", json=body, headers=headers, timeout=60) as stream:
        return "".join(stream.iter_text()) if stream.status_code == 200 else None


@pytest.mark.parametrize("token", ["tda_", "tda_" + "x" * 43, "tda_" + "x" * 44, "tda_" + "x" * 5_000])
def test_a_token_that_is_none_is_refused_like_a_wrong_key(site: Site, token: str) -> None:
    answer = rpc(site, token)
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_a_token_is_no_login_and_no_key_in_another_header(site: Site) -> None:
    token = site.token()["access_token"]
    assert get(f"{site.url}/admin/", headers={"Authorization": f"Bearer {token}"}).status_code == 302
    answer = post(f"{site.url}/jsonrpc", json={}, headers={"X-API-Key": token})
    assert answer.status_code == 401


def test_a_token_for_one_agent_is_refused_elsewhere(site: Site) -> None:
    token = site.token(resource=f"{site.url}/agents/echo/jsonrpc")["access_token"]
    assert rpc(site, token, path="/agents/echo/jsonrpc").status_code == 200
    refusal = rpc(site, token, path="/agents/story/jsonrpc")
    assert (refusal.status_code, refusal.json()["error"]["message"][-14:]) == (401, "not valid here")
    assert rpc(site, token).status_code == 401
    headers = {"Authorization": f"Bearer {token}"}
    assert post(f"{site.url}/links", json={"id": "x"}, headers=headers).status_code == 401
    whole = site.token(resource=site.url)["access_token"]
    assert rpc(site, whole, path="/agents/story/jsonrpc").status_code == 200


def ticket(site: Site, token: str, path: str = "/ws") -> str:
    answer = post(f"{site.url}{path}/ticket", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["ticket"])


def ask_socket(site: Site, ticket: str, method: str, path: str = "/ws") -> dict[str, Any] | int:
    """Return the answer to a call on a socket that a ticket opens, or the status of the refused handshake."""
    address = f"{site.url.replace('http', 'ws', 1)}{path}?A2A-Version=1.0&ticket={ticket}"
    try:
        with connect(address, open_timeout=30) as socket:
            socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": "none"}}))
            return dict(json.loads(socket.recv(30)))
    except InvalidStatus as refused:
        return refused.response.status_code


def sparc(site: Site, token: str, method: str, path: str, **params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return post(f"{site.url}{path}/sparc", json=body, headers={"Authorization": f"Bearer {token}"}).json()


def test_a_token_for_one_agent_reaches_no_other_by_workflows_and_batches(site: Site) -> None:
    whole = site.token()["access_token"]
    token = site.token(resource=f"{site.url}/agents/echo")["access_token"]
    text = {"role": "user", "messageId": "secret", "parts": [{"kind": "text", "text": "secret"}]}
    other = sparc(site, whole, "message/send", "/agents/asks", message=text)["result"]["id"]
    workflow = {"workflowId": "of-the-server", "phase": "specification"}
    assert "result" in sparc(site, whole, "sparc/phase/set", "", **workflow)
    for method in ("sparc/phase/set", "sparc/execute"):
        error = sparc(site, token, method, "/agents/echo", **workflow)["error"]
        assert error["data"]["reason"] == "WORKFLOW_NOT_FOUND"
    batch = sparc(site, token, "batchtools/execute", "/agents/echo", operation="any", tasks=[other])["result"]["id"]

    def ended() -> Any:
        task = sparc(site, token, "tasks/get", "/agents/echo", taskId=batch)["result"]
        return task if task["status"]["state"] != "working" else None

    task = until(ended, "the batch ends")
    assert task["artifacts"][0]["parts"][0]["data"]["error"]["reason"] == "TASK_NOT_FOUND"
    assert "secret" not in json.dumps(task)


def test_a_ticket_of_a_token_opens_a_socket_with_its_scopes_until_it_is_revoked(site: Site) -> None:
    token = site.token("reader")["access_token"]
    first, second = ticket(site, token), ticket(site, token)
    answer = ask_socket(site, first, "GetTask")
    assert isinstance(answer, dict)
    assert "ask" in answer["error"]["message"], "there is no such task"
    third = ticket(site, token)
    answer = ask_socket(site, third, "CancelTask")
    assert isinstance(answer, dict)
    assert "tasks:cancel" in json.dumps(answer["error"])
    assert site.form("reader", "/oauth2/revoke", token=token).status_code == 200
    until(lambda: rpc(site, token).status_code == 401, "the token is refused")
    assert ask_socket(site, second, "GetTask") == 401


def test_a_ticket_of_a_token_for_one_agent_opens_no_other_address(site: Site) -> None:
    token = site.token(resource=f"{site.url}/agents/echo/jsonrpc")["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    assert post(f"{site.url}/ws/ticket", headers=headers).status_code == 401
    narrow = ticket(site, token, "/agents/echo/ws")
    assert ask_socket(site, narrow, "GetTask") == 401
    assert isinstance(ask_socket(site, narrow, "GetTask", "/agents/echo/ws"), dict)


def follow(url: str) -> int:
    with httpx.stream("GET", url, timeout=30) as stream:
        return stream.status_code


def test_a_link_of_a_token_ends_with_the_token(site: Site) -> None:
    token = site.token(resource=f"{site.url}/agents/echo/jsonrpc")["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    task = rpc(site, token, "SendMessage", "/agents/echo/jsonrpc", **SEND).json()["result"]["task"]["id"]
    made = post(f"{site.url}/agents/echo/links", json={"taskId": task}, headers=headers).json()
    assert follow(made["url"]) == 200
    assert follow(made["url"].replace("/agents/echo", "")) == 403
    assert site.form("robot", "/oauth2/revoke", token=token).status_code == 200
    assert follow(made["url"]) == 403


def test_a_link_lasts_no_longer_than_its_token(site: Site) -> None:
    token = site.token()["access_token"]
    task = rpc(site, token, "SendMessage", **SEND).json()["result"]["task"]["id"]
    expire(site, 100)
    headers = {"Authorization": f"Bearer {token}"}
    until(lambda: lifetime(post(f"{site.url}/links", json={"taskId": task}, headers=headers)) <= 100, "it is shorter")


def lifetime(answer: httpx.Response) -> float:
    """Return the seconds until a new link expires."""
    return datetime.fromisoformat(answer.json()["expiresAt"]).timestamp() - time.time()


def test_a_caller_without_a_token_is_led_to_the_documents(site: Site) -> None:
    challenge = post(f"{site.url}/jsonrpc", json={}).headers["WWW-Authenticate"]
    address = challenge.partition('resource_metadata="')[2].partition('"')[0]
    resource = get(address).json()
    assert resource["resource"] == site.url
    (issuer,) = resource["authorization_servers"]
    server = get(f"{issuer}/.well-known/oauth-authorization-server").json()
    assert server["issuer"] == issuer
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert set(server["grant_types_supported"]) == {"authorization_code", "client_credentials", "refresh_token"}
    schemes = get(f"{site.url}/.well-known/agent-card.json", headers={"A2A-Version": "1.0"}).json()["securitySchemes"]
    flow = schemes["oauthClientCredentials"]["oauth2SecurityScheme"]["flows"]["clientCredentials"]
    assert flow["tokenUrl"] == server["token_endpoint"]
    assert set(flow["scopes"]) == set(server["scopes_supported"])
    code = schemes["oauthAuthorizationCode"]["oauth2SecurityScheme"]
    assert code["oauth2MetadataUrl"] == f"{issuer}/.well-known/oauth-authorization-server"
    assert code["flows"]["authorizationCode"]["pkceRequired"]
    assert code["flows"]["authorizationCode"]["authorizationUrl"] == server["authorization_endpoint"]


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("POST", "/jsonrpc"),
        ("POST", "/agents/echo/jsonrpc"),
        ("POST", "/agents/echo/message:send"),
        ("GET", "/agents/echo/tasks/x"),
        ("GET", "/agents/echo/agent/authenticatedExtendedCard"),
        ("POST", "/agents/echo/ws/ticket"),
    ],
)
@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_challenge_leads_to_the_document_of_what_was_called(site: Site, verb: str, path: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    body = {"json": {}} if verb == "POST" else {}
    answer = httpx.request(verb, site.url + path, headers=headers, verify=NO_TLS, timeout=30, **body)
    assert answer.status_code == 401, answer.text
    address = answer.headers["WWW-Authenticate"].partition('resource_metadata="')[2].partition('"')[0]
    assert get(address).json()["resource"] == site.url + ("/agents/echo" if "/agents/" in path else "")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("", 200),
        ("/", 200),
        ("/jsonrpc", 200),
        ("/agents/echo", 200),
        ("/agents/echo/jsonrpc", 200),
        ("/agents/nobody", 404),
        ("/agents/echo?x=1", 200),
    ],
)
def test_each_agent_has_a_document_as_a_protected_resource(site: Site, path: str, status: int) -> None:
    answer = get(f"{site.url}/.well-known/oauth-protected-resource{path}")
    assert answer.status_code == status
    if status == 200:
        assert answer.json()["resource"] == site.url + path.partition("?")[0].rstrip("/")
    assert post(f"{site.url}/.well-known/oauth-protected-resource{path}").status_code in {404, 405}


def test_an_issuer_with_another_path_has_no_document(site: Site) -> None:
    assert get(f"{site.url}/.well-known/oauth-authorization-server/other").status_code == 404


def test_tokens_that_are_issued_and_revoked_have_entries_without_the_token(site: Site) -> None:
    pk = site.programs["robot"].pk
    query = f"select caller, tenant, method, outcome, peer from tasks_app_auditentry where credential = 'oauth:{pk}'"  # noqa: S608
    before = site.server.rows(query)
    token = site.token()["access_token"]
    assert site.form("reader", "/oauth2/revoke", token=token).status_code == 200, "it is not the reader's"
    for _ in range(2):
        assert site.form("robot", "/oauth2/revoke", token=token).status_code == 200
    rows = sorted(map(tuple, site.server.rows(query)))
    for row in map(tuple, before):
        rows.remove(row)
    end = ("result", "127.0.0.1")
    assert rows == [("robot", "default", "oauth2/revoke", *end), ("robot", "default", "oauth2/token", *end)]
    assert token not in str(site.server.rows("select * from tasks_app_auditentry"))
