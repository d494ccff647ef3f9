"""Operators from before there were roles: they keep the rows that they saw, and their groups keep their permissions."""

import importlib

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User

from tasks_app.models import OperatorReach
from tasks_app.operators.reach import EVERYTHING, NOTHING, reach_of
from tasks_app.operators.roles import ROLES, VIEWER, set_permissions

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
MIGRATION = importlib.import_module("tasks_app.migrations.0035_operators")


def test_operators_from_before_keep_every_tenant_and_groups_from_before_gain_nothing() -> None:
    Group.objects.all().delete()
    tom, visitor = User.objects.create_user("tom", is_staff=True), User.objects.create_user("visitor")
    tom.groups.add(Group.objects.create(name=VIEWER))
    MIGRATION.keep_rights(apps, None)
    set_permissions(apps)
    assert reach_of(User.objects.get(username="tom")) == EVERYTHING
    assert reach_of(visitor) == NOTHING
    assert not OperatorReach.objects.filter(user=visitor).exists()
    assert list(tom.groups.values_list("name", flat=True)) == [f"{VIEWER} (own)"]
    assert User.objects.get(username="tom").get_all_permissions() == set()
    OperatorReach.objects.all().delete()
    MIGRATION.keep_rights(apps, None)  # after a migration back
    set_permissions(apps)
    assert set(ROLES) <= set(Group.objects.values_list("name", flat=True))
