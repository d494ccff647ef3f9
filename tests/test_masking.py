"""Secrets: names by their end in any case style, values by their beginning; in linear time."""

import json
import logging
import tracemalloc

import pytest

from tasks_app.database.rows import RunRow
from tasks_app.exchanges.redaction import redact
from tasks_app.masking import (
    MASK,
    OVERLAP,
    TRACE_CHARACTERS,
    WINDOW,
    Line,
    is_secret_name,
    mask_id,
    mask_text,
    mask_trace,
    site,
)
from tasks_app.masking import mask_values as masked
from tests.support.growth import is_linear

SECRETS = """
    token Token TOKEN access_token sessionToken session_token session-token bearerToken X-Amz-Security-Token
    idToken token2 tokenValue accesstoken secret clientSecret client_secret webhookSecret secretAccessKey
    AWS_SECRET_ACCESS_KEY password Password dbPassword db_password DB_PASSWORD newPassword password1
    passwordConfirmation password_hash dbpassword passwd pwd userpwd passphrase passcode accessKey signingKey
    private_key privateKeyPem x-goog-api-key x-api-key apiKey APIKey API_KEY apikey Apikey AWSKey stripeKey
    ssh_key sshKeys credential credentials awsCredentials authorization Authorization proxy-authorization auth
    basicAuth authentication jwt otp cookie Set-Cookie
""".split()
ORDINARY = """
    primaryKey primary_key PRIMARY_KEY foreignKey publicKey public_key sortKey partition-key routingKey
    idempotencyKey idempotency_key cacheKey objectKey messageKey key keys Key keyId key_name keyboard monkey
    turkey hotkey tokenCount token_count maxTokens max_tokens prompt_tokens promptTokens totalTokens tokenType
    tokenUrl tokenize nextPageToken pageToken page_token nextToken cursorToken nextpagetoken passwordPolicy
    secretName secretary credentialsId author authority authorName authenticated cookieless laptop broken stop
    text note compass id apiKeySecurityScheme 1 _ -
""".split()
ROOM = "A1b2C3d4E5f6G7h8I9j0K1l2"
VALUES = [
    f"sk-{ROOM}",
    f"sk-proj-{ROOM}",
    f"sk_live_{ROOM}",
    f"ghp_{ROOM}",
    f"gho_{ROOM}",
    f"github_pat_{ROOM}_x",
    f"glpat-{ROOM}",
    f"xoxb-{ROOM}-1",
    f"xoxp-{ROOM}",
    "AKIAABCDEFGHIJKLMNOP",
    f"AIza{ROOM}-_{ROOM}",
    f"eyJ{ROOM}.eyJ{ROOM}.{ROOM}",
    f"tdk_{ROOM}",
    f"tda_{ROOM}",
    f"tdo_{ROOM}",
    f"tdr_{ROOM}",
    f"tds_{ROOM}",
    f"whsec_{ROOM}==",
    f"Bearer {ROOM}",
    "bearer hunter2x",
    f"BEARER  {ROOM}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{ROOM}\n-----END RSA PRIVATE KEY-----",
]
PLAIN = [
    "a task-1234567890-abcdefghij",
    "the bearer authentication of RFC 6750",
    "ask-me-anything-you-like-to-know",
    "AKIA",
    "Slovakia, AKIAABCDEFGHIJKLMNOPQRS",
    "ghp_short",
    "sk-short",
    "xoxo-kisses",
    "eyJ.a.b",
    "Bearer of news",
    "mail me@example.org",
    "https://example.org/a@b?design=1&page=2&monkey=3",
]


@pytest.mark.parametrize("name", SECRETS)
def test_a_name_that_ends_like_a_secret_is_one_in_any_case_style(name: str) -> None:
    assert is_secret_name(name)
    body = json.dumps({"a": [{name: "hunter2"}]}).encode()
    assert "hunter2" not in redact(body)


@pytest.mark.parametrize("name", ORDINARY)
def test_a_name_that_only_holds_such_a_word_is_none(name: str) -> None:
    assert not is_secret_name(name)
    assert json.loads(redact(json.dumps({"password": 1, name: "shown"}).encode()))[name] == "shown"


def test_long_names_of_callers_are_not_kept_in_memory() -> None:
    """A caller may choose another name of a megabyte in each call."""
    tracemalloc.start()
    try:
        for number in range(20):
            redact(json.dumps({"password": 1, f"{'name' * 25_000}{number}": "x"}).encode())
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000


@pytest.mark.parametrize("value", VALUES)
def test_a_value_that_begins_like_a_secret_is_masked_wherever_it_stands(value: str) -> None:
    for text in (value, f"use {value}, please", f'"{value}"', f"({value})"):
        assert ROOM not in masked(text)
        assert MASK in masked(text)
    body = json.dumps({"note": f"use {value}."}).encode()
    kept = json.loads(redact(body))["note"]
    assert (kept[:4], MASK in kept, ROOM in kept) == ("use ", True, False)


@pytest.mark.parametrize("value", PLAIN)
def test_a_text_that_only_looks_alike_stays(value: str) -> None:
    assert masked(value) == value


def test_numbers_and_objects_are_masked_only_where_a_secret_may_be_one() -> None:
    shown = json.loads(
        redact(
            b'{"token":1,"otp":123456,"tokens":512,"sortingKey":3,"password":true,"secret":null,'
            b'"authentication":{"scheme":"Bearer","credentials":"hunter2"},"credentials":{"user":"hunter2"}}'
        )
    )
    assert shown == {
        "token": MASK,
        "otp": MASK,
        "tokens": 512,
        "sortingKey": 3,
        "password": True,
        "secret": None,
        "authentication": {"scheme": "Bearer", "credentials": MASK},
        "credentials": MASK,
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("connect(password=\"hunter2 x\", user='me')", f"connect(password={MASK}, user='me')"),
        ("{'session_token': 'hunter2'}", f"{{'session_token': {MASK}}}"),
        ("ValueError: password=hunter2", f"ValueError: password={MASK}"),
        ("Authorization: Basic aHVudGVyMg==", f"Authorization: {MASK}"),
        ("postgres://me:hunter2@host/db", f"postgres://{MASK}@host/db"),
        ("if password == other: max_tokens=512, key=3", "if password == other: max_tokens=512, key=3"),
        ("KeyError: 'token'", "KeyError: 'token'"),
    ],
)
def test_a_traceback_loses_what_is_assigned_to_a_secret_name(text: str, shown: str) -> None:
    assert mask_text(text) == shown
    assert mask_trace(shown) == shown, "masked twice is masked once"


def test_the_traceback_of_a_run_and_a_line_of_the_log_are_masked() -> None:
    row = RunRow(
        task_id="t",
        fence=1,
        worker="w",
        started_at=None,
        ended_at=None,
        outcome="failed",  # type: ignore[arg-type]
        traceback="RuntimeError: cannot log in with password='hunter2'",
    )
    assert row.traceback == f"RuntimeError: cannot log in with password={MASK}"
    try:
        raise RuntimeError("api_key=hunter2")
    except RuntimeError as error:
        cause = (RuntimeError, error, error.__traceback__)
    record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "failed for %s", (f"tdk_{ROOM}",), cause)
    line = Line("%(levelname)s %(message)s").format(record)
    assert line.startswith(f"ERROR failed for {MASK}\nTraceback")
    assert "hunter2" not in line.splitlines()[-1]


def test_a_long_traceback_keeps_its_beginning_and_its_end() -> None:
    kept = mask_trace("begin " + "x" * 5_000_000 + " end")
    assert len(kept) < TRACE_CHARACTERS + 100
    assert kept.startswith("begin ")
    assert kept.endswith(" end")
    assert "characters left out" in kept


def test_ids_are_masked_by_value() -> None:
    uuid = "01a1fc21-9ab7-709b-9efd-49ea78a09a97"
    for plain in (uuid, f"ctx-{uuid}", "1", "my-context", "task-1234567890-abcdefghij"):
        assert mask_id(plain) == plain
    assert mask_id(f"tdk_{ROOM}") == MASK


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://hooks.example/services/T0/hunter2?x=1", "https://hooks.example/…"),
        ("https://hooks.example:8443/", "https://hooks.example:8443/"),
        ("https://hooks.example", "https://hooks.example"),
        ("http://[::1]:80?hunter2", "http://[::1]:80/…"),
        ("https://me:hunter2@h/", "https://h/"),
        ("hunter2", MASK),
        ("", MASK),
    ],
)
def test_an_address_is_shown_as_its_site(url: str, shown: str) -> None:
    assert site(url) == shown


def test_the_addresses_of_webhooks_are_recorded_as_their_sites() -> None:
    url = "https://hooks.example/services/hunter2"
    inline = {"params": {"message": {"parts": [{"url": "https://files.example/a.pdf"}]}, "configuration": {}}}
    for name in ("taskPushNotificationConfig", "pushNotificationConfig"):
        inline["params"]["configuration"] = {name: {"url": url}}  # type: ignore[dict-item]
        kept = redact(json.dumps(inline).encode())
        assert ("hunter2" in kept, "https://hooks.example/" in kept, "a.pdf" in kept) == (False, True, True)
    for method in ("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"):
        assert "hunter2" not in redact(json.dumps({"method": method, "params": {"url": url}}).encode())
    assert "hunter2" not in redact(json.dumps({"result": {"configs": [{"url": url}]}}).encode(), webhooks=True)


@pytest.mark.parametrize("value", [*VALUES, "https://me:hunter2@example.org/?token=hunter2&a=1"])
def test_a_secret_in_a_long_text_is_masked_wherever_a_window_ends(value: str) -> None:
    for place in range(WINDOW - len(value) - 1, WINDOW + 2):
        text = f"{' ' * place}{value} {' ' * WINDOW}{value}"
        shown = masked(value)
        assert masked(text) == f"{' ' * place}{shown} {' ' * WINDOW}{shown}"
    long = f"tdk_{'a' * 3 * WINDOW}"
    assert masked(f"{' ' * (WINDOW - 30)}{long} end") == f"{' ' * (WINDOW - 30)}{MASK} end"
    plain = f"{' ' * (WINDOW - 20)}AKIAABCDEFGHIJKLMNOPQRS{' ' * WINDOW}"
    assert masked(plain) == plain


@pytest.mark.parametrize("length", [3_000, OVERLAP + 1, WINDOW, 3 * WINDOW])
def test_a_user_in_a_url_is_masked_however_far_away_its_end_is(length: int) -> None:
    for place in range(0, WINDOW + 2, 997):
        text = f"{' ' * place}https://user:{'s' * length}@h/a@b {' ' * WINDOW}x"
        assert masked(text) == f"{' ' * place}https://{MASK}@h/a@b {' ' * WINDOW}x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a://b@c@d", f"a://{MASK}@d"),
        ("a://@b a://@@b", f"a://@b a://{MASK}@b"),
        ("a://b://c@d", f"a://b://{MASK}@d"),
        (":///a@b", ":///a@b"),
        ("a://b@", f"a://{MASK}@"),
        (f"a://me:tdk_{ROOM}@b c://d@e", f"a://{MASK}@b c://{MASK}@e"),
    ],
)
def test_a_user_stands_between_the_scheme_and_the_last_at_sign(text: str, shown: str) -> None:
    assert masked(text) == shown


# Each is the beginning of a pattern. A search that backtracks at each of them takes quadratic time.
HOSTILE = [
    *"eyJ eyJaaaaaaaa. tdk_ sk- ghp_ AKIA AIza xoxb- https:// ://a ://a:b ?a= ?key= &a password".split(),
    *"password= a_ _ aA A =".split(),
    "bearer ",
    "Bearer aaaaaaaa",
    "Bearer\t",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN ",
    "password='",
    "token: ",
    "key ",
    '"',
    "'",
    " ",
    "\\u",
]


@pytest.mark.parametrize("motif", HOSTILE, ids=repr)
def test_the_time_grows_with_the_length_and_not_with_its_square(motif: str) -> None:
    def search(text: str) -> None:
        mask_text(text)
        redact(json.dumps({"token": 1, "text": text, text[:60]: 1}).encode())
        redact(text.encode())

    assert is_linear(search, motif, 131_072)
