"""The answer to an address of the admin at which there is nothing."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from tasks_app.admin.text import visible


def nothing_here(request: HttpRequest, path: str) -> HttpResponse:
    """Say so to those who are logged in, with the way back; others are asked to log in first, as everywhere."""
    context = {**admin.site.each_context(request), "title": "There is nothing here", "path": visible(path[:200])}
    return TemplateResponse(request, "admin/nothing_here.html", context, status=404)
