"""The URLs of the OAuth server. They are there if A2A_OAUTH is on."""

from django.urls import URLPattern, path, re_path

from tasks_app.oauth import metadata, views
from tasks_app.oauth.limits import limit_wrong
from tasks_app.oauth.outages import answer_outages

urlpatterns: list[URLPattern] = [
    re_path(r"^\.well-known/oauth-authorization-server(?P<path>(?:/[^\s]*)?)\Z", metadata.server),
    path("oauth2/authorize", views.Authorize.as_view()),
    path("oauth2/token", limit_wrong(answer_outages(views.token))),
    path("oauth2/revoke", limit_wrong(answer_outages(views.revoke))),
    path("oauth2/introspect", limit_wrong(answer_outages(views.introspect))),
]
