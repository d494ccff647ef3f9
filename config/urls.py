"""The one URLconf."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

from tasks_app.admin.not_found import show_not_found
from tasks_app.urls import urlpatterns as doors

admin.autodiscover()
handler400 = "tasks_app.transports.pages.refuse"
handler404 = "tasks_app.transports.pages.not_found"
handler500 = "tasks_app.transports.pages.fail"

urlpatterns = [
    *doors,
    path("api/", include("tasks_app.api.urls")),
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("admin/<path:path>", admin.site.admin_view(show_not_found)),
]
