"""The site of the admin: every page needs a login and, where it is required, a second factor.

It is not in the room of the admin's pages: importing those asks for the site, so the site cannot import them.
"""

from functools import update_wrapper
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.safestring import mark_safe
from django.views.decorators.cache import never_cache
from django_otp import login as verify_session
from django_otp.plugins.otp_static.models import StaticDevice

from tasks_app.operators import logins, proof, second_factor, users
from tasks_app.operators.audit import ADMIN, Change, operator_of, record_acts
from tasks_app.sealing import Unreadable, seal, unseal

KEY = "second_factor_key"
"""The member of a session with the sealed key of a device that no code has confirmed yet."""
WRONG = "This code is not right, or it was used before. After a wrong code the next one has to wait for a moment."

ENROLLED = (
    "Your app is set up already. Enter the next code that it shows. If you do not have its recovery codes, ask for a "
    "reset of your second factor, and enrol again."
)
DONE = (
    "Your app is set up. If you could not write down the recovery codes, ask for a reset of your second factor, and "
    "enrol again: that shows new ones."
)
"""The answer to an enrolment that was sent twice. The codes were in the first answer, which the browser has dropped."""


class Site(admin.AdminSite):
    """An admin site for operators who have given their second factor."""

    def has_permission(self, request: HttpRequest) -> bool:
        """Return whether the request may see pages. Leaving needs no second factor."""
        if not super().has_permission(request):
            return False
        return second_factor.is_satisfied(request.user) or request.path == reverse("admin:logout")

    def get_urls(self) -> list[URLResolver | URLPattern]:
        own = [
            path("second-factor/", self.second_factor, name="second_factor"),
            path("proof/", self.admin_view(self.prove), name="proof"),
        ]
        return [*own, *super().get_urls()]

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Return the view behind the login, and behind a new proof of the operator if it gives rights."""
        inner = super().admin_view(view, cacheable)

        def answer(request: HttpRequest, *args: Any, **values: Any) -> HttpResponse:
            if self.has_permission(request):
                if "\0" in request.path and not _finds_by_itself(request):
                    raise Http404  # No id has U+0000, which PostgreSQL refuses to search for.
                if proof.is_asked_by(request) and not proof.is_fresh(request):
                    return proof.ask(request)
            response: HttpResponse = inner(request, *args, **values)
            return response

        return update_wrapper(answer, inner)

    def prove(self, request: HttpRequest) -> HttpResponse:
        """Ask for the password again, and for the second factor where it is on."""
        error = ""
        if request.method == "POST":
            form = request.POST
            error = proof.check(request, form.get("password", "")[:4096], form.get("code", "")[:32])
            if not error:
                return HttpResponseRedirect(_next(request))
        request.current_app = self.name
        page = {**self.each_context(request), "title": "Your password again", "next": _next(request)}
        page |= {"error": error, "asks_code": settings.A2A_SECOND_FACTOR}
        return TemplateResponse(request, "admin/proof.html", page)

    def autocomplete_view(self, request: HttpRequest) -> HttpResponse:
        """Suggest nothing: no form asks. Django's own view counts whole tables, and fails for some names and U+0000."""
        raise Http404

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the form, or ask an operator who has logged in for the second factor."""
        if super().has_permission(request) and not second_factor.is_satisfied(request.user):
            return HttpResponseRedirect(f"{reverse('admin:second_factor')}?{urlencode({'next': _next(request)})}")
        response = super().login(request, extra_context)
        if request.method == "POST" and response.status_code == 302 and not settings.A2A_SECOND_FACTOR:
            _record_login(request, None)
        return response

    def password_change(  # type: ignore[override]  # the stubs know its page alone
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Let operators change their own password. Their tokens end with it.

        A wrong old password counts as a wrong login: otherwise a stolen session would be enough to guess it.
        """
        user: Any = request.user
        if request.method == "POST":
            name, address = user.get_username(), logins.find_address(request)
            if not logins.begin_login(name, address):
                seconds = logins.remaining_wait(name, address)
                sentence = f"Too many wrong passwords: wait {seconds} seconds before you try again."
                messages.error(request, sentence)
                return HttpResponseRedirect(request.path)
            if user.check_password(request.POST.get("old_password", "")):
                logins.accept_login(name, address, is_complete=True)
        with transaction.atomic():
            response = super().password_change(request, extra_context)
            if request.method == "POST" and response.status_code == 302:
                users.record_password(operator_of(request, ADMIN), user)
        return response

    def second_factor(self, request: HttpRequest) -> HttpResponse:
        """Ask for a code, or let an operator without a device enrol one."""
        user: Any = request.user
        if not super().has_permission(request):
            return HttpResponseRedirect(reverse("admin:login"))
        if second_factor.is_satisfied(user):
            if _is_enrolment(request):
                messages.warning(request, DONE)
            return HttpResponseRedirect(_next(request))
        return never_cache(self._ask if second_factor.has_device(user) else self._enrol)(request)

    def _ask(self, request: HttpRequest) -> HttpResponse:
        user: Any = request.user
        if request.method != "POST":
            return self._show(request)
        if _is_enrolment(request):
            return self._show(request, error=ENROLLED)
        name, address = user.get_username(), logins.find_address(request)
        if not logins.begin_login(name, address):
            seconds = logins.remaining_wait(name, address)
            return self._show(request, error=f"Too many wrong codes: wait {seconds} seconds before you try again.")
        device = second_factor.verify(user, request.POST.get("code", "")[:32])
        if device is None:
            return self._show(request, error=WRONG)
        logins.accept_login(name, address, is_complete=True)
        self._verify(request, device)
        return HttpResponseRedirect(_next(request))

    def _enrol(self, request: HttpRequest) -> HttpResponse:
        user: Any = request.user
        if not (key := _read_key(request)):
            key = second_factor.new_key()
            request.session[KEY] = seal(key)
            return self._show(request, key=key)
        if request.method != "POST":
            return self._show(request, key=key)  # The app may have it already.
        code = "".join(request.POST.get("code", "").split())[:32]
        result = second_factor.enrol(user, key, code, operator_of(request, ADMIN))
        if result is None and second_factor.has_device(user):  # The same form, sent twice, has enrolled it meanwhile.
            return self._show(request, error=ENROLLED)
        if result is None:
            return self._show(request, key=key, error=WRONG)
        device, codes = result
        del request.session[KEY]
        logins.accept_login(user.get_username(), logins.find_address(request), is_complete=True)
        self._verify(request, device)
        return self._show(request, codes=codes)

    def _verify(self, request: HttpRequest, device: Any) -> None:
        """Bind the session to the device, under a new name."""
        request.session.cycle_key()
        verify_session(request, device)
        proof.renew(request)
        _record_login(request, device)

    def _show(self, request: HttpRequest, *, key: str = "", **context: Any) -> HttpResponse:
        user: Any = request.user
        if key:
            # The element is our own: nothing in it is text of another.
            image = mark_safe(second_factor.draw_key(user, key))  # noqa: S308
            context |= {"image": image, "key": second_factor.spell_key(key)}
        request.current_app = self.name
        page = {**self.each_context(request), "title": "Second factor", "next": _next(request), **context}
        return TemplateResponse(request, "admin/second_factor.html", page)


def _is_enrolment(request: HttpRequest) -> bool:
    """Return whether the form of the page is the one that shows a key."""
    return request.method == "POST" and "enrols" in request.POST


def _read_key(request: HttpRequest) -> str:
    """Return the key in the session; empty without one, and for one that cannot be read."""
    try:
        return unseal(request.session.get(KEY, ""))
    except Unreadable:
        return ""


def _record_login(request: HttpRequest, device: Any) -> None:
    """Record a complete login, and after a recovery code how many are left."""
    user: Any = request.user
    after: dict[str, Any] = {}
    if device is not None:
        is_recovery = isinstance(device, StaticDevice)
        after = (
            {"second_factor": "recovery code", "left": device.token_set.count()}
            if is_recovery
            else {"second_factor": "app"}
        )
    record_acts(operator_of(request, ADMIN), "log in", Change(user, {}, after))


def _next(request: HttpRequest) -> str:
    """Return the page that the operator wanted, if it is one of ours."""
    target = request.POST.get("next") or request.GET.get("next") or ""
    is_ours = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if is_ours else reverse("admin:index")


def _finds_by_itself(request: HttpRequest) -> bool:
    """Return whether our own code finds the row of a page. It leads back to the list if there is no such row."""
    name = (request.resolver_match.url_name if request.resolver_match else None) or ""
    return name.startswith("tasks_app_") and name.endswith("_change")
