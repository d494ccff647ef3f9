"""Verbs of resources: what can be done to rows beside reading them, each with its body and its permission."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from django.http import Http404
from msgspec import Struct
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from tasks_app.api.problems import Refused
from tasks_app.operators.audit import Operator
from tasks_app.operators.refusals import ActRefused
from tasks_app.operators.removals import RowRemoved, watching
from tasks_app.operators.texts import add_checks, find_warnings

CREATE = "create"
"""The name of the verb that makes a row: POST to the resource itself."""


class Body(serializers.Serializer[Any]):
    """The body of a verb. It refuses members that it does not know, so that a misspelled option is noticed."""

    reason = serializers.CharField(
        max_length=255, required=False, default="", allow_blank=True, help_text="The reason, recorded with the act."
    )

    def get_fields(self) -> dict[str, Any]:
        """Return the members, with the checks that forms and commands make, too."""
        fields: dict[str, Any] = super().get_fields()
        add_checks(fields)
        for field in fields.values():
            if isinstance(field, serializers.ChoiceField):
                field.error_messages["invalid_choice"] = f"must be one of {', '.join(field.choices)}"
            if isinstance(field, serializers.ListField):
                field.error_messages["not_a_list"] = "must be a list, in square brackets"
        return fields

    def to_internal_value(self, data: Any) -> Any:
        """Return the values of the members. Raises ValidationError."""
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            names = ", ".join(sorted(self.fields))
            raise ValidationError(dict.fromkeys(unknown, f"is not a member of this body; it has {names}"))
        wrong = dict(_find_wrong_kinds(data, self.fields)) if isinstance(data, dict) else {}
        try:
            values = super().to_internal_value(data)
        except ValidationError as error:
            others: Any = error.detail
            raise ValidationError({**others, **wrong}) from None
        if wrong:
            raise ValidationError(wrong)
        return values


def _find_wrong_kinds(data: dict[str, Any], fields: Any) -> Iterator[tuple[str, str]]:
    """Yield each member whose value is of another kind than its field, and which the field would take nevertheless.

    The serializers read forms as well, where every value is a text.
    """
    for name, field in fields.items():
        one = getattr(field, "child", field)  # A list has a field for each of its values.
        values = data.get(name)
        for value in values if isinstance(values, list) else [values]:
            if isinstance(one, serializers.CharField) and isinstance(value, int | float):
                yield name, "must be a text, in quotation marks"
            if isinstance(one, serializers.IntegerField | serializers.FloatField) and isinstance(value, bool | str):
                yield name, "must be a number, without quotation marks"
            if isinstance(one, serializers.BooleanField) and value is not None and not isinstance(value, bool):
                yield name, "must be true or false"


class Ids(Body):
    """The body of a verb on several rows."""

    ids = serializers.ListField(
        child=serializers.CharField(max_length=64), min_length=1, max_length=500, help_text="The ids of the rows."
    )


class Verb(Struct, frozen=True):
    """The declaration of a verb."""

    name: str
    permission: str
    """Django's verb in the permission, as in `tasks_app.change_task`."""
    body: type[Body]
    one: bool
    """True if the verb is about one row, whose id is in the path."""
    summary: str
    gives_rights: bool = False
    """Whether it gives rights, so that it needs a token that administers, or a session with a new proof."""


def verb(
    *, permission: str = "change", body: type[Body] = Body, one: bool = True, gives_rights: bool = False
) -> Callable[[Any], Any]:
    """Make a verb from a method. A method named `create` makes rows; each other name is the last segment of the path.

    With `one` the method gets the row, then the values of the body and the operator. It returns the answer, or None for
    the row as it is then. An ActRefused that it raises is the answer 409 with its sentence, or 400 if a member is
    wrong. The answer has `warnings` as well if the body has scopes that open nothing.
    """

    def decorate(do: Callable[..., Any]) -> Any:
        declaration = Verb(do.__name__, permission, body, one, (do.__doc__ or "").strip().splitlines()[0], gives_rights)

        @wraps(do)
        def act(self: Any, request: Any, pk: str | None = None) -> Response:
            if gives_rights:
                self.check_proof()
            row = self.get_object() if one else None
            values = read_body(body, request)
            operator: Operator = self.read_operator(values.pop("reason"))
            warnings = find_warnings(values.get("scopes", ""))
            try:
                if row is None:
                    answer = do(self, values, operator)
                else:
                    with watching(row):
                        answer = do(self, row, values, operator)
            except RowRemoved:
                raise Http404 from None
            except ActRefused as refusal:
                if refusal.member:
                    raise ValidationError({refusal.member: str(refusal)}) from None
                raise Refused(str(refusal)) from None
            status = 201 if declaration.name == CREATE else 200
            answer = self.describe(self.get_object()) if answer is None else answer
            return Response(answer | {"warnings": warnings} if warnings else answer, status=status)

        act.declaration = declaration  # type: ignore[attr-defined]  # resources find their verbs by it
        return act if do.__name__ == CREATE else action(detail=one, methods=["post"], url_path=_path(do))(act)

    return decorate


def _path(do: Callable[..., Any]) -> str:
    return do.__name__.replace("_", "-")


def read_body(body: type[Body], request: Any) -> dict[str, Any]:
    """Return the values of a request's body. Raises ValidationError."""
    if not isinstance(request.data, dict):
        raise ValidationError("The body must be a JSON object.")
    serializer = body(data=request.data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
