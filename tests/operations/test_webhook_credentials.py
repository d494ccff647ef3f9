"""Nothing is sent to a webhook whose service account, OAuth client or user has ended; their tokens end none."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from msgspec.structs import replace

from tasks_app import clock
from tasks_app.callers import service_accounts
from tasks_app.callers.access import caller_for
from tasks_app.callers.service_accounts import CERTIFICATE
from tasks_app.callers.stream_links import FindReader, make_link
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.models import ApiKey, OAuthClient, Principal, ServiceAccount, UserLink, Webhook
from tasks_app.operators.refusals import ActRefused
from tasks_app.webhooks import credentials, disable, enable, leases
from tasks_app.webhooks.credentials import REVOKED
from tasks_app.webhooks.keys import UNSENT, end_webhooks_without_credential
from tasks_app.webhooks.limits import Busy
from tests.conftest import Person, person
from tests.operations.webhooks import OPS, WORKS, happens, hook, hooked, pump, states
from tests.support.receiver import Receiver

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.storage,
    pytest.mark.usefixtures("loopback", "lanes"),
]
SCOPES = frozenset({"tasks:read", "tasks:write"})
Change = Callable[[Any], None]


@pytest.fixture(autouse=True)
def schemes(settings: Any) -> Any:
    """Accept the tokens of an issuer, and certificates."""
    settings.A2A_ISSUERS = {"https://id.example.com": {"audience": "taskdesk"}}
    settings.A2A_SCHEMES = ["oidc", "bearer", "mtls", "oauth", "session"]
    return settings


def by_account(olga: Principal, issuer: str = "https://id.example.com") -> tuple[Person, ServiceAccount]:
    row = ServiceAccount.objects.create(issuer=issuer, subject="robot", principal=olga, scopes="tasks:write")
    now = clock.now().timestamp()
    caller = service_accounts.caller_of(row, SCOPES, now, now + 1)
    assert caller
    return Person("", caller), row


def by_certificate(olga: Principal) -> tuple[Person, ServiceAccount]:
    return by_account(olga, CERTIFICATE)


def by_client(olga: Principal) -> tuple[Person, OAuthClient]:
    row = OAuthClient.objects.create(principal=olga, client_id="c", name="c", scopes="tasks:read tasks:write")
    ends = clock.now().timestamp() + 1
    return Person("", caller_for(olga, SCOPES, credential=f"oauth:{row.pk}", expires_at=ends)), row


def by_user(olga: Principal) -> tuple[Person, UserLink]:
    user = User.objects.create_user("ann", is_staff=True)
    row = UserLink.objects.create(user=user, principal=olga, scopes="*", created_at=clock.now())
    return Person("", caller_for(olga, SCOPES, credential=f"user:{user.pk}")), row


def changed(**columns: Any) -> Change:
    """Return a change of the row of the credential; a value may be a function of the time."""

    def change(row: Any) -> None:
        values = {name: value() if callable(value) else value for name, value in columns.items()}
        type(row).objects.filter(pk=row.pk).update(**values)

    return change


def relink(row: UserLink) -> None:
    row.principal = Principal.objects.create(tenant=row.principal.tenant, name="otto")
    row.save()


def later() -> Any:
    return clock.now() + timedelta(minutes=1)


ENDS = [
    (by_account, "disabled", changed(disabled_at=clock.now), credentials.ACCOUNT),
    (by_account, "unscoped", changed(scopes="tasks:read xtasks:write"), credentials.ACCOUNT),
    (by_account, "not-before", changed(not_before=later), credentials.TOKENS),
    (by_account, "deleted", lambda row: row.delete(), credentials.ACCOUNT),
    (by_certificate, "disabled", changed(disabled_at=clock.now), credentials.ACCOUNT),
    (by_client, "disabled", changed(disabled_at=clock.now), credentials.CLIENT),
    (by_client, "revoked", changed(revoked_at=clock.now), credentials.CLIENT),
    (by_client, "unscoped", changed(scopes="acp:tasks:write"), credentials.CLIENT),
    (by_user, "disabled", lambda row: User.objects.update(is_active=False), credentials.USER),
    (by_user, "without the admin", lambda row: User.objects.update(is_staff=False), credentials.USER),
    (by_user, "unlinked", lambda row: row.delete(), credentials.USER),
    (by_user, "relinked", relink, credentials.USER),
    (by_user, "unscoped", changed(scopes="tasks:read"), credentials.USER),
]
IDS = [f"{make.__name__}, {name}" for make, name, *_ in ENDS]


@pytest.mark.parametrize(("make", "name", "end", "reason"), ENDS, ids=IDS)
def test_nothing_is_sent_after_the_credential_has_ended(
    olga: Principal, there: Receiver, make: Any, name: str, end: Change, reason: str
) -> None:
    person, row = make(olga)
    task_id = hooked(person, there.url)
    happens(task_id, WORKS)
    pump()
    assert len(there.got) == 1, "while the credential is valid, deliveries are sent"
    end(row)
    happens(task_id, WORKS)
    pump()
    assert (len(there.got), states()[-1]) == (1, (3, "waiting", 0))
    assert bridge.do(Do(end_webhooks_without_credential)) == 1
    webhook = Webhook.objects.get()
    assert (webhook.state, webhook.reason, webhook.due_at) == ("disabled", reason, None)
    assert webhook.deliveries.get(seq=3).error == UNSENT
    with pytest.raises(ActRefused, match=reason):
        enable(webhook.pk, OPS)


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        (by_account, "A2A_ISSUERS", {"https://other.example.com": {"audience": "taskdesk"}}),
        (by_account, "A2A_SCHEMES", ["bearer", "mtls"]),
        (by_account, "A2A_SCHEMES", ["bearer"]),
        (by_certificate, "A2A_SCHEMES", ["oidc", "bearer"]),
    ],
)
def test_nothing_is_sent_after_the_issuer_has_been_removed(
    olga: Principal, there: Receiver, schemes: Any, make: Any, name: str, value: Any
) -> None:
    person, _ = make(olga)
    task_id = hooked(person, there.url)
    link = make_link(task_id, olga.pk, person.caller, None, None)
    reader = FindReader(link.owner_id, link.key_id, link.credential, link.since)
    happens(task_id, WORKS)
    pump()
    assert (len(there.got), bridge.do(reader) is None) == (1, False)
    setattr(schemes, name, value)
    assert bridge.do(reader) is None, "a link to a stream ends too"
    happens(task_id, WORKS)
    pump()
    assert len(there.got) == 1
    assert bridge.do(Do(end_webhooks_without_credential)) == 1
    assert (Webhook.objects.get().state, Webhook.objects.get().reason) == ("disabled", credentials.ISSUER)


def by_key(olga: Principal) -> tuple[Person, None]:
    return person("olga", "default"), None


@pytest.mark.parametrize(("make", "scheme"), [(by_key, "bearer"), (by_client, "oauth"), (by_user, "session")])
def test_nothing_is_sent_after_the_scheme_has_been_switched_off(
    olga: Principal, there: Receiver, schemes: Any, make: Any, scheme: str
) -> None:
    caller, _ = make(olga)
    happens(hooked(caller, there.url), WORKS)
    pump()
    assert len(there.got) == 1
    schemes.A2A_SCHEMES = [one for one in schemes.A2A_SCHEMES if one != scheme]
    happens(Webhook.objects.get().task_id, WORKS)
    pump()
    assert len(there.got) == 1
    assert bridge.do(Do(end_webhooks_without_credential)) == 1
    webhook = Webhook.objects.get()
    assert (webhook.state, webhook.reason) == ("disabled", credentials.SCHEME)
    with pytest.raises(ActRefused, match=credentials.SCHEME):
        enable(webhook.pk, OPS)


def test_links_of_keys_end_when_no_scheme_takes_keys(owner: Person, schemes: Any) -> None:
    link = make_link("task", owner.caller.owner_id, owner.caller)
    reader = FindReader(link.owner_id, link.key_id, link.credential, link.since)
    schemes.A2A_SCHEMES = ["key"]
    assert bridge.do(reader) is not None
    schemes.A2A_SCHEMES = ["oidc"]
    assert bridge.do(reader) is None
    of_operator = make_link("task", owner.caller.owner_id, None)
    assert bridge.do(FindReader(of_operator.owner_id, None)) is not None


@pytest.mark.parametrize("make", [by_account, by_certificate, by_client, by_user])
def test_the_end_of_a_token_ends_no_webhook(olga: Principal, there: Receiver, hand: Any, make: Any) -> None:
    person, _ = make(olga)
    task_id = hooked(person, there.url)
    hand.on(hours=9)
    happens(task_id, WORKS)
    assert bridge.do(Do(end_webhooks_without_credential)) == 0
    pump()
    assert len(there.got) == 1


def test_a_token_from_before_counts_by_its_own_time(olga: Principal, there: Receiver) -> None:
    person, row = by_account(olga)
    issued_at = clock.now() - timedelta(hours=1)
    early = Person("", replace(person.caller, issued_at=issued_at.timestamp()))
    happens(hooked(early, f"{there.url}/early"), WORKS)
    happens(hooked(person, f"{there.url}/late"), WORKS)
    ServiceAccount.objects.filter(pk=row.pk).update(not_before=clock.now() - timedelta(minutes=30))
    pump()
    assert [got.path for got in there.got] == ["/late"]


def test_another_credential_takes_a_webhook_over(olga: Principal, there: Receiver) -> None:
    first, row = by_account(olga)
    second, _ = by_client(olga)
    task_id = hooked(first, there.url, id="mine")
    changed(disabled_at=clock.now)(row)
    hook(second, task_id, there.url, id="mine")
    happens(task_id, WORKS)
    pump()
    assert (len(there.got), Webhook.objects.get().caller_credential) == (1, second.caller.credential)


def test_an_account_that_is_enabled_again_loses_nothing_that_was_not_due(olga: Principal, there: Receiver) -> None:
    person, row = by_account(olga)
    task_id = hooked(person, there.url)
    changed(disabled_at=clock.now)(row)
    assert bridge.do(Do(end_webhooks_without_credential)) == 0
    changed(disabled_at=None)(row)
    happens(task_id, WORKS)
    pump()
    assert len(there.got) == 1


def test_a_deleted_key_and_one_without_the_scope_end_their_webhooks(owner: Person, there: Receiver) -> None:
    task_id = hooked(owner, there.url)
    happens(task_id, WORKS)
    ApiKey.objects.update(scopes="tasks:read")
    assert bridge.do(Do(end_webhooks_without_credential)) == 1
    assert Webhook.objects.get().reason == credentials.KEY_UNSCOPED
    ApiKey.objects.update(scopes="*")
    enable(Webhook.objects.get().pk, OPS)
    ApiKey.objects.all().delete()
    happens(task_id, WORKS)
    pump()
    assert bridge.do(Do(end_webhooks_without_credential)) == 1
    assert (Webhook.objects.get().reason, there.got) == (REVOKED, [])


def test_a_webhook_from_before_credentials_were_stored_goes_on(owner: Person, there: Receiver) -> None:
    task_id = hooked(owner, there.url)
    Webhook.objects.update(key=None, caller_credential=None, evidence_at=None)
    happens(task_id, WORKS)
    assert bridge.do(Do(end_webhooks_without_credential)) == 0
    pump()
    assert len(there.got) == 1
    webhook = Webhook.objects.get()
    disable(webhook.pk, OPS)
    enable(webhook.pk, OPS)


def test_a_credential_costs_no_further_statement(olga: Principal, owner: Person, there: Receiver) -> None:
    def count(person: Person) -> int:
        happens(hooked(person, there.url), WORKS)
        with CaptureQueriesContext(connection) as queries:
            assert len(leases.take("worker", 10, Busy([], None))) == 1
        return len(queries)

    assert count(owner) == count(by_client(olga)[0]) == count(by_account(olga)[0]) > 0
