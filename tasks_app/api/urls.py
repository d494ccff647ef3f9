"""The paths of the operators' API: /api/v1/ lists the resources, /api/v1/openapi.json describes them."""

from django.urls import path, re_path
from rest_framework.routers import SimpleRouter

from tasks_app.api.description import Description
from tasks_app.api.index import Index, NoSuchPath
from tasks_app.api.resources import RESOURCES

router = SimpleRouter()
for resource in RESOURCES:
    router.register(f"v1/{resource.segment}", resource, basename=f"api-{resource.segment}")

urlpatterns = [
    path("v1/", Index.as_view(), name="api-index"),
    path("v1/openapi.json", Description.as_view(), name="api-description"),
    *router.urls,
    re_path("", NoSuchPath.as_view()),
]
