"""The one URLconf."""

from django.contrib import admin
from django.urls import path

from tasks_app.urls import urlpatterns as doors

urlpatterns = [*doors, path("admin/", admin.site.urls)]
