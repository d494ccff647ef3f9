"""Pages of the admin: which there are, how they are asked for, and what they show."""

import re
from typing import Any

from django.contrib import admin
from django.test import Client
from django.urls import reverse

from tasks_app.admin.clients import OAuthClientAdmin
from tasks_app.models import OAuthClient

ACTIONS = {
    "cancel_selected": "cancel",
    "change_client": "change",
    "change_scopes": "change",
    "refuse_former_tokens": "not_before",
}
"""The verbs of actions of the admin, where they have another name."""


def registered() -> dict[type[Any], Any]:
    """Return the pages of each model that has some, in the order of the models' names."""
    admin.autodiscover()
    return dict(sorted(admin.site._registry.items(), key=lambda pair: pair[0]._meta.label))


def every_page() -> dict[type[Any], Any]:
    """Return the pages of each model, and those that are there with A2A_OAUTH alone."""
    return registered() | {OAuthClient: OAuthClientAdmin(OAuthClient, admin.site)}


def verbs_of_actions(pages: Any) -> set[str]:
    """Return the verbs that the actions of a page do."""
    names = {name if isinstance(name, str) else name.__name__ for name in pages.actions}
    return {ACTIONS.get(name, name) for name in names}


def listed(client: Client, model: str, **query: str) -> list[str]:
    """Return the ids of the rows that the list shows."""
    answer = client.get(reverse(f"admin:tasks_app_{model}_changelist"), query)
    assert answer.status_code == 200, answer.headers
    return [row.pk for row in answer.context["cl"].result_list]


def page(client: Client, model: str, pk: str) -> str:
    answer = client.get(reverse(f"admin:tasks_app_{model}_change", args=[pk]))
    assert answer.status_code == 200, answer.headers
    return answer.content.decode()


def form_digest(client: Client, place: str) -> dict[str, str]:
    """Open the form of an operator or a role, and return the hidden field that tells which values it showed."""
    return digest_in(client.get(place))


def digest_in(answer: Any) -> dict[str, str]:
    """Return the hidden field of a form that an answer has."""
    (digest,) = re.findall('<input type="hidden" name="_digest" value="([0-9a-f]+)">', answer.content.decode())
    return {"_digest": digest}


def act(client: Client, model: str, action: str, *pks: str, confirmed: bool = True) -> Any:
    """Do the action on these rows, up to its second page or beyond it."""
    form = {"action": action, "_selected_action": pks} | ({"post": "yes"} if confirmed else {"index": "0"})
    return client.post(reverse(f"admin:tasks_app_{model}_changelist"), form, follow=confirmed)


def messages_of(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]
