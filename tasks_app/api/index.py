"""The pages of the operators' API beside its resources: the list of them, and the answer at paths without a view."""

from typing import Any

from rest_framework.exceptions import NotFound
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from tasks_app.api.resources import RESOURCES
from tasks_app.api.views import View


class Page(View):
    """A page for every operator, without a model."""

    permission_classes = (IsAuthenticated,)


class Index(Page):
    """The resources with their paths, and the operator that the credentials belong to."""

    def get(self, request: Request) -> Response:
        """Return the paths of all resources."""
        paths = {resource.segment: f"/api/v1/{resource.segment}/" for resource in RESOURCES}
        return Response({"operator": request.user.get_username(), "resources": paths})


class NoSuchPath(Page):
    """The answer at paths without a view."""

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self.get = self.post = self.put = self.patch = self.delete = self.refuse
        return super().dispatch(request, *args, **kwargs)

    def refuse(self, request: Request) -> Response:
        """Raise NotFound, once the operator is authenticated."""
        raise NotFound("There is nothing at this path. /api/v1/ lists the resources; their paths end with a slash.")
