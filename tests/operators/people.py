"""Operators with a role and a reach, and how their programs call the operators' API."""

from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.test import Client

from tasks_app.operators import tokens, users
from tasks_app.operators.audit import COMMAND, Operator
from tasks_app.operators.users import NamedReach

OPS = Operator(name="ops", door=COMMAND)
EVERYWHERE = NamedReach(all_tenants=True)


class Program(NamedTuple):
    """A program of an operator, with its token."""

    user: User
    token: str

    def get(self, path: str, **query: Any) -> Any:
        return Client().get(f"/api/v1/{path}", query, headers=self.headers)

    def post(self, path: str, **body: Any) -> Any:
        return Client().post(f"/api/v1/{path}", body, content_type="application/json", headers=self.headers)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


def operator(*roles: str, reach: NamedReach = EVERYWHERE, name: str = "") -> User:
    """Return an operator with these roles."""
    name = name or f"{'-'.join(roles) or 'nothing'}-{User.objects.count()}".replace(" ", "-")
    user, _ = users.make_user(OPS, name, roles, reach)
    return user


def program(*roles: str, reach: NamedReach = EVERYWHERE, administers: bool = True) -> Program:
    """Return a program of a new operator with these roles."""
    user = operator(*roles, reach=reach)
    return Program(user, tokens.make_token(user, "a test", 1, OPS, administers=administers)[1])
