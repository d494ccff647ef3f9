"""The base of every resource: a list and one row, limited to what the operator may see, and the resource's verbs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from django.db.models import Model, QuerySet
from django.http import Http404
from rest_framework import mixins, serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.viewsets import GenericViewSet

from a2a.errors import InvalidParams
from a2a.params import read_time
from tasks_app.api.paging import Newest
from tasks_app.api.problems import NoPermission, OutOfReach
from tasks_app.api.verbs import Verb
from tasks_app.api.views import View
from tasks_app.callers.scopes import only_read
from tasks_app.operators import lookup, proof, reach
from tasks_app.operators.audit import API, Operator, operator_of

PAGING = frozenset({Newest.cursor_query_param, Newest.page_size_query_param})

WINDOW = ("since", "until")
"""The parameters of lists with the first time that counts, and the first that does not count any more."""


class HasPermission(BasePermission):
    """Demands Django's permission of the verb on the resource's model, which roles give."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return True, or raise NoPermission with the name of the permission."""
        user: Any = request.user
        if not user or not user.is_authenticated:
            return False
        check_permission(user, view.permission_name())
        return True


def check_permission(user: Any, name: str) -> None:
    """Check that the user has a permission. Raises NoPermission with its name."""
    if not user.has_perm(name):
        raise NoPermission(f"{user.get_username()} lacks the permission {name}, which this needs.")


def _time_of(values: dict[str, str], name: str) -> datetime | None:
    """Take a time out of the query parameters. Raises ValidationError."""
    try:
        return read_time(values.pop(name, None), name)
    except InvalidParams as error:
        raise ValidationError(dict(error.violations)) from None


class Resource(View, mixins.ListModelMixin, mixins.RetrieveModelMixin, GenericViewSet[Any]):
    """A table as operators see it. A subclass names its path, model, serializer, filters and verbs."""

    segment: ClassVar[str]
    """The segment of the path."""
    model: ClassVar[type[Model]]
    filters: ClassVar[dict[str, str]] = {}
    """The query parameters of the list with the columns that they compare, each with an index or in a short table."""
    bounded: ClassVar[dict[str, str]] = {}
    """The query parameters whose columns are in a long table and have no index. They need `since`, which bounds what is
    read."""
    few: ClassVar[Mapping[str, Sequence[str]]] = {}
    """All values of query parameters that have few, and whose columns do not list them as choices."""
    moment: ClassVar[str] = "created_at"
    """The column of times that `since` and `until` compare. A list of a model without it lacks these parameters."""
    page_parameters: ClassVar[tuple[str, ...]] = ()
    """The query parameters of one row, whole numbers that choose a page of what belongs to it."""
    lookup_value_regex = r"[A-Za-z0-9_.:@%+-]{1,150}"

    permission_classes = (HasPermission,)
    pagination_class = Newest
    http_method_names = ("get", "head", "post", "options")

    @classmethod
    def verbs(cls) -> dict[str, Verb]:
        """Return the verbs by the names of their methods."""
        methods = ((name, getattr(cls, name, None)) for name in dir(cls))
        return {name: declaration for name, each in methods if (declaration := getattr(each, "declaration", None))}

    def permission_name(self) -> str:
        """Return the permission that the request needs."""
        declaration = self.verbs().get(self.action or "")
        verb = declaration.permission if declaration else "view"
        return f"{self.model._meta.app_label}.{verb}_{self.model._meta.model_name}"

    def rows(self) -> QuerySet[Any]:
        """Return all rows with the related ones that the serializer shows."""
        return self.model._default_manager.all()

    def get_queryset(self) -> QuerySet[Any]:
        """Return the rows that the operator may see."""
        return reach.limit(self.request.user, self.rows())

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows that the query parameters leave in the list."""
        if self.detail:
            return queryset
        values = {name: str(value) for name, value in self.request.query_params.items() if name not in PAGING}
        if unknown := sorted(set(values) - set(self.parameters())):
            names = ", ".join(sorted({*self.parameters(), *PAGING}))
            raise ValidationError(dict.fromkeys(unknown, f"is not a parameter of this list; it has {names}"))
        if wrong := [name for name, value in values.items() if "\0" in value]:
            raise ValidationError(dict.fromkeys(wrong, "has a character that no row has"))
        since, until = (_time_of(values, name) for name in WINDOW)
        if since and until and since >= until:
            raise ValidationError({"since": "must be earlier than until"})
        if not since and (unbounded := sorted(set(self.bounded) & set(values))):
            raise ValidationError(dict.fromkeys(unbounded, "needs `since` as well: no index has it"))
        for name, value in values.items():
            if (choices := self.choices_of(name)) and value not in choices:
                names = ", ".join(filter(None, choices))
                raise ValidationError({name: f"must be one of {names}"})
        return self.select(lookup.in_window(queryset, self.moment, since, until), values)

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """Return the query parameters of the list."""
        has_moment = any(field.name == cls.moment for field in cls.model._meta.concrete_fields)
        return (*cls.filters, *cls.bounded, *WINDOW) if has_moment else tuple(cls.filters)

    @classmethod
    def choices_of(cls, name: str) -> tuple[str, ...]:
        """Return all values that a query parameter may have; none if it may have any."""
        column = (cls.filters | cls.bounded).get(name)
        if name in cls.few or column is None or "__" in column:
            return tuple(cls.few.get(name, ()))
        return tuple(str(value) for value, _ in getattr(cls.model._meta.get_field(column), "flatchoices", ()))

    def select(self, rows: QuerySet[Any], values: dict[str, str]) -> QuerySet[Any]:
        """Return the rows with these values of the query parameters."""
        filters = self.filters | self.bounded
        for name, value in values.items():
            try:
                rows = lookup.filter_by(rows, **{filters[name]: value})
            except ValueError:
                raise ValidationError({name: "is not a value of this column"}) from None
        return rows

    def get_object(self) -> Any:
        """Return the row of the path. Raises Http404 for one that the operator may not see."""
        try:
            return super().get_object()
        except (OverflowError, UnicodeError):
            raise Http404 from None

    def describe(self, row: Any) -> dict[str, Any]:
        """Return the row as the resource shows it."""
        return dict(self.get_serializer(row).data)

    def check_tenant(self, name: str) -> None:
        """Check that the operator may make rows of the tenant. Raises OutOfReach."""
        if not reach.may_write(self.request.user, name):
            raise OutOfReach(f"{reach.explain_refusal(self.request.user, name)}.")

    def check_proof(self) -> None:
        """Check that the operator may give rights by this request. Raises PermissionDenied."""
        token: Any = self.request.auth
        if token is not None and not token.administers:
            raise PermissionDenied(
                "This gives rights, and the token may not: `manage.py a2a operators token NAME --administer` makes one."
            )
        if token is None and not proof.is_fresh(self.request._request):
            raise PermissionDenied("This gives rights: enter your password again at /admin/proof/ first.")

    def check_scopes(self, scopes: str) -> None:
        """Check that the operator may give a program these scopes. Scopes that only read need no proof.

        Raises PermissionDenied.
        """
        if not only_read(scopes.split()):
            self.check_proof()

    def read_operator(self, reason: str) -> Operator:
        """Return the operator of the request."""
        return operator_of(self.request, API, reason)


class Row(serializers.ModelSerializer[Any]):
    """The base of serializers. Resources only read by them; verbs have bodies of their own."""

    def get_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = super().get_fields()
        for field in fields.values():
            field.read_only = True
        return fields


class OwnedRow(Row):
    """The base of serializers of rows with an owner and a tenant, which are shown by their names."""

    tenant = serializers.CharField(source="tenant.name")
    owner = serializers.CharField(source="owner.name")
