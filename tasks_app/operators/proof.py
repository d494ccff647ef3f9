"""The proof that an operator is still the person at the keyboard, which acts that lead to more rights ask for.

A login is such a proof for A2A_PROOF_MINUTES. After that a page of the admin asks for the password again, and for the
second factor where it is on. A program cannot give such a proof, so its token must be made for such acts.
"""

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from tasks_app import clock
from tasks_app.operators import logins, second_factor

KEY = "proved"
"""The member of a session with the time of the newest proof."""
FORMS = frozenset(
    {
        *("auth_user_add", "auth_user_change", "auth_user_password_change", "auth_group_add", "auth_group_change"),
        *("tasks_app_apikey_add", "tasks_app_operatortoken_add", "tasks_app_permission_add"),
        *("tasks_app_oauthclient_add", "tasks_app_serviceaccount_add", "tasks_app_slackworkspace_add"),
    }
)
"""Pages of the admin whose forms give rights: to operators, to callers, to keys and to tokens."""
ACTIONS = frozenset(
    {
        ("auth_user_changelist", "link"),
        ("auth_user_changelist", "password"),
        ("auth_user_changelist", "reset_second_factor"),
        ("tasks_app_apikey_changelist", "rotate"),
        ("tasks_app_oauthclient_changelist", "change_client"),
        ("tasks_app_oauthclient_changelist", "enable"),
        ("tasks_app_oauthclient_changelist", "rotate"),
        ("tasks_app_permission_changelist", "remove"),
        ("tasks_app_relay_changelist", "login"),
        ("tasks_app_serviceaccount_changelist", "change_scopes"),
        ("tasks_app_serviceaccount_changelist", "enable"),
        ("tasks_app_slackworkspace_changelist", "enable"),
        ("tasks_app_slackworkspace_changelist", "map_user"),
        ("tasks_app_slackworkspace_changelist", "unmap_user"),
    }
)
"""Actions of the admin that give rights, with their pages."""


def is_fresh(request: HttpRequest) -> bool:
    """Return whether the session has a proof that is new enough."""
    seconds = settings.A2A_PROOF_MINUTES * 60
    return not seconds or clock.now().timestamp() - float(request.session.get(KEY, 0)) <= seconds


def ask(request: HttpRequest) -> HttpResponse:
    """Return the way to the page that asks for a proof, and leads back."""
    return HttpResponseRedirect(f"{reverse('admin:proof')}?{urlencode({'next': request.get_full_path()})}")


def renew(request: HttpRequest) -> None:
    """Count the proof of the session from now on."""
    request.session[KEY] = clock.now().timestamp()


def is_asked_by(request: HttpRequest) -> bool:
    """Return whether a page of the admin asks for a proof. Operators who only look are not asked."""
    user: Any = request.user
    match = request.resolver_match
    name = match.url_name if match else None
    if request.method == "POST":
        # A form may name several actions. Django performs the one at the position that the member `index` has.
        return name in FORMS or any((name, action) in ACTIONS for action in request.POST.getlist("action"))
    return name in FORMS and user.has_perm("auth.change_user")


def check(request: HttpRequest, password: str, code: str) -> str:
    """Take a new proof. Return the sentence for a wrong one; empty for a right one, which then counts."""
    user: Any = request.user
    name, address = user.get_username(), logins.find_address(request)
    if not logins.begin_login(name, address):
        seconds = logins.remaining_wait(name, address)
        return f"Too many wrong logins: wait {seconds} seconds before you try again."
    is_right = user.check_password(password)
    if not is_right or (settings.A2A_SECOND_FACTOR and not second_factor.verify(user, code)):
        return "The password or the code is not right, or the code was used before."
    logins.accept_login(name, address, is_complete=True)
    renew(request)
    return ""
