"""The "not found" page of the admin."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from tasks_app.admin.text import reveal


def show_not_found(request: HttpRequest, path: str) -> HttpResponse:
    """Answer 404 with a way back. Anonymous visitors never get here: the admin asks them to log in first."""
    context = {**admin.site.each_context(request), "title": "Page not found", "path": reveal(path[:200])}
    return TemplateResponse(request, "admin/not_found.html", context, status=404)
