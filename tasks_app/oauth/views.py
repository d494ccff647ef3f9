"""The endpoints at /oauth2/, which Django's own handler serves."""

import json
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest, PermissionDenied, TooManyFieldsSent
from django.forms import CharField, HiddenInput
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST
from oauth2_provider.forms import AllowForm
from oauth2_provider.models import AccessToken
from oauth2_provider.views.base import AuthorizationView, RevokeTokenView, TokenView
from oauthlib.common import Request

from tasks_app.cards.addresses import address_of
from tasks_app.models import OAuthClient
from tasks_app.oauth.resources import agents_of
from tasks_app.oauth.scheme import is_valid
from tasks_app.oauth.scopes import describe
from tasks_app.oauth.secrets import checksum
from tasks_app.oauth.server import GRANTS, Core, find_repeated, parameters_in
from tasks_app.operators import proof, reach
from tasks_app.operators.approvals import TO_APPROVE

BASIC = 'Basic realm="taskdesk"'
"""The challenge to a client that did not prove its identity (RFC 6749, 5.2)."""


HEADERS = {"Content-Type": "application/json", "Cache-Control": "no-store", "Pragma": "no-cache"}
"""Headers of every answer with a body of the token endpoint (RFC 6749, 5)."""


EXPLANATIONS = {
    "invalid_grant": "The code or refresh token is unknown, expired or used, or this client, redirect_uri or "
    "code_verifier is not the one that it was issued for.",
    "invalid_scope": "The request has a scope that the client, or the token to refresh, does not have.",
    "unauthorized_client": "The client does not have this grant.",
    "unsupported_grant_type": f"This server does not have the grant_type. {GRANTS}",
}
"""The descriptions of errors of the token endpoint that oauthlib leaves without one (RFC 6749, 5.2)."""
FORMS = frozenset({"", "application/x-www-form-urlencoded"})
"""The media types of requests for tokens (RFC 6749, 4.4.2). A request without parameters needs no type."""


class ApprovalForm(AllowForm):  # type: ignore[misc]  # the toolkit ships no types
    """The form of our page, which gives `state` back as the client sent it, with its spaces (RFC 6749, 4.1.2)."""

    state = CharField(required=False, strip=False, widget=HiddenInput)


class Token(TokenView):  # type: ignore[misc]  # the toolkit ships no types
    """The token endpoint, without the toolkit's own way for device codes.

    The toolkit reads a new token back, for a signal that has no receivers here. By then a second use of the same
    refresh token may have deleted the new one.
    """

    @method_decorator(sensitive_post_parameters("client_secret"))
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        _, headers, body, status = self.create_token_response(request)
        # An error that oauthlib raises, such as a wrong resource, comes with none of the headers of RFC 6749, 5.
        return HttpResponse(body if status == 200 else _explain(body), status=status, headers=HEADERS | headers)


class Authorize(AuthorizationView):  # type: ignore[misc]  # the toolkit ships no types
    """The page on which an operator approves a client, each time that it asks."""

    template_name = "oauth2/authorize.html"
    form_class = ApprovalForm

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer an operator who may change the client. Any other visitor logs in first, as in the admin."""
        if not admin.site.has_permission(request):
            return redirect_to_login(request.get_full_path(), reverse("admin:login"))
        if not may_approve(request):
            raise PermissionDenied("You may not approve this client: you need the permission to change OAuth clients.")
        if not proof.is_fresh(request):
            # The holder of a code may act for the principal of the client, without the operator.
            return proof.ask(request)
        if request.method == "POST" and not names_client(request.POST.get("client_id", "")):
            # The toolkit takes the name in the form as that of a client which exists.
            raise BadRequest("The form names no client: begin again at the program that sent you here.")
        # By parameters of its own, such as approval_prompt, the toolkit would skip our page or show another one.
        request.GET = parameters_in(request.GET)  # type: ignore[assignment]  # the stubs want an immutable one
        response: HttpResponse = super().dispatch(request, *args, **kwargs)
        return response

    def render_to_response(self, context: dict[str, Any], **options: Any) -> HttpResponse:
        """Show the page, whose form may lead to the client's address."""
        client, resources = context.get("application"), context.get("resource", "").split()
        page = {
            **admin.site.each_context(self.request),
            "title": f"Approve {client.name}?" if client else "The request of the client is not valid",
            "permissions": [(scope, describe(scope)) for scope in context.get("scopes", ())],
            "resources": resources,
            "agents": sorted(agents_of(resources) or ()),
            **context,
        }
        response: HttpResponse = super().render_to_response(page, **options)
        if client:
            target = urlsplit(context["redirect_uri"])
            response.form_target = f"{target.scheme}://{target.netloc}"  # type: ignore[attr-defined]  # see headers.py
        return response

    def redirect(self, redirect_to: str, application: OAuthClient | None) -> HttpResponse:
        """Redirect to the client with the name of this server (RFC 9207), after errors as well."""
        parts = urlsplit(redirect_to)
        pairs = [(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if name != "iss"]
        query = urlencode([*pairs, ("iss", address_of(self.request))])
        response: HttpResponse = super().redirect(urlunsplit(parts._replace(query=query)), application)
        return response


def names_client(text: str) -> bool:
    """Return whether a text from a form is the id of a client."""
    return "\0" not in text and OAuthClient.objects.filter(client_id=text).exists()


def may_approve(request: HttpRequest) -> bool:
    """Return whether the operator may approve the clients that the request names. Anyone may see that one is unknown.

    The form names the client as well, and the toolkit takes that name.
    """
    user: Any = request.user
    names = {query.get("client_id", "").replace("\0", "") for query in (request.GET, request.POST)}
    clients = OAuthClient.objects.filter(client_id__in=names)
    is_beyond = reach.limit(user, clients).count() < clients.count()
    return bool(user.has_perm(TO_APPROVE)) and not is_beyond


@csrf_exempt
def token(request: HttpRequest) -> HttpResponse:
    """Answer with tokens for a secret, a code or a refresh token (RFC 6749, 3.2)."""
    if refusal := _refuse_form(request):
        return refusal
    return _challenge(Token.as_view()(request))


@csrf_exempt
def revoke(request: HttpRequest) -> HttpResponse:
    """Revoke a token of the client, with all tokens of its family (RFC 7009)."""
    if refusal := _refuse_form(request):
        return refusal
    return _challenge(RevokeTokenView.as_view()(request))


@csrf_exempt
@require_POST
def introspect(request: HttpRequest) -> HttpResponse:
    """Describe an access token to a client of the same tenant (RFC 7662). All other tokens are not active.

    An unknown token does not count as a wrong one of the address: a gateway passes on the tokens of its own callers,
    and pays for each question out of the rate limit of its principal.
    """
    if request.META.get("QUERY_STRING"):
        # oauthlib reads secrets there, too, and servers log addresses. Its own endpoints refuse them (RFC 6749, 2.3.1).
        return _refuse("Parameters belong in the body, and not in the address.")
    if refusal := _refuse_form(request):
        return refusal
    core = Token.get_oauthlib_core()
    client = _authenticate(core, request)
    if client is None:
        return _challenge(JsonResponse({"error": "invalid_client"}, status=401))
    if not (text := request.POST.get("token")):
        return _refuse("The token is missing.")
    row = (
        AccessToken.objects.select_related("application__principal", "user")
        .filter(token_checksum=checksum(text), application__principal__tenant_id=client.principal.tenant_id)
        .first()
    )
    return JsonResponse(_describe(row, address_of(request)), headers={"Cache-Control": "no-store"})


def _refuse(sentence: str) -> JsonResponse:
    return JsonResponse({"error": "invalid_request", "error_description": sentence}, status=400)


def _explain(body: str) -> str:
    """Return a refusal of the token endpoint, with a description of its error."""
    answer = json.loads(body)
    if "error_description" in answer or answer.get("error") not in EXPLANATIONS:
        return body
    return json.dumps(answer | {"error_description": EXPLANATIONS[answer["error"]]})


def _refuse_form(request: HttpRequest) -> JsonResponse | None:
    """Return the refusal of a body that is no form, has too many fields, or has one twice (RFC 6749, 3.2); None for
    any other."""
    if request.content_type not in FORMS:
        return _refuse("The body must be a form, of the type application/x-www-form-urlencoded.")
    try:
        name = find_repeated(request.POST)
    except TooManyFieldsSent:
        return _refuse(f"The form has more than {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS} fields.")
    return _refuse(f"The parameter {name} is given more than once.") if name else None


def _authenticate(core: Core, request: HttpRequest) -> OAuthClient | None:
    """Return the confidential client whose secret the request has."""
    envelope = Request(*core._extract_params(request))
    is_valid = core.server.request_validator.authenticate_client(envelope)
    client: OAuthClient | None = envelope.client if is_valid else None
    return client


def _describe(row: Any, issuer: str) -> dict[str, Any]:
    """Return what a client may know about a token."""
    if row is None or not is_valid(row):
        return {"active": False}
    return {
        "active": True,
        "iss": issuer,
        "aud": row.resource or [issuer],
        "sub": row.application.principal.name,
        "client_id": row.application.client_id,
        "scope": " ".join(sorted(set(row.scope.split()) & set(row.application.scopes.split()))),
        "token_type": "Bearer",
        "iat": int(row.created.timestamp()),
        "exp": int(row.expires.timestamp()),
    }


def _challenge(response: HttpResponse) -> HttpResponse:
    if response.status_code == 401:
        response["WWW-Authenticate"] = BASIC
    return response
