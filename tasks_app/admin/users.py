"""Operators' accounts and groups, edited in Django's own forms. Accounts are deactivated, never deleted."""

import hashlib
from collections.abc import Callable
from typing import Any

import orjson
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db import IntegrityError
from django.db.models import ManyToManyField, Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from tasks_app.admin.acting import act_on_each
from tasks_app.admin.asking import act_on_one
from tasks_app.admin.making import Checked, check_tenant
from tasks_app.admin.readonly import read_operator, redirect_to_acts
from tasks_app.admin.selection import Selecting
from tasks_app.admin.text import format_time, reveal
from tasks_app.models import OperatorReach
from tasks_app.operators import reach, second_factor, users
from tasks_app.operators.approvals import end_lost_approvals
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.operators.groups import check_name, names_of
from tasks_app.operators.roles import ROLES
from tasks_app.operators.texts import check_printable

admin.site.unregister([User, Group])

DIGEST = "_digest"
"""The hidden field of a form with a digest of the values of its row when it was shown (audited_form.html)."""
OPEN_AGAIN = (
    "Nothing was saved: the form does not say which values it showed. Open the page again, and make your changes there."
)
STALE = (
    "Nothing was saved: it was changed after the form was opened, perhaps by a first click of yours. The page now "
    "shows the present values: make your changes again, where they are still right."
)
NAMESAKE = "Nothing was saved: another operator has made one of this name meanwhile. Choose another name."
CONFLICT = "Nothing was saved: a row that it needs was changed or removed meanwhile. Look at the form again."
NO_ROW = "One of these rows does not exist. Choose among those that are shown."


def _sentence_of(error: IntegrityError) -> str:
    return NAMESAKE if users.is_of_namesake(error) else CONFLICT


def _check_digest(digest: str | None, present: str) -> None:
    """Check that a form which is saved showed the values that its row still has. Raises UserRefused.

    A form has every value. Saving an older one would enable an operator again whom another has disabled meanwhile. The
    form itself has the digest, because an operator may have several of one row, in as many tabs.
    """
    if digest is None:
        raise users.UserRefused(OPEN_AGAIN)
    if digest != present:
        raise users.UserRefused(STALE)


class RowsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # not generic at run time
    """A choice of rows. A number that SQLite cannot store, and so cannot search for, is that of no row."""

    def clean(self, value: Any) -> Any:
        try:
            return super().clean(value)
        except OverflowError:
            raise forms.ValidationError(NO_ROW) from None


ROWS: dict[Any, dict[str, Any]] = {ManyToManyField: {"form_class": RowsField}}


class Audited(Selecting):
    """Django's forms, with their changes recorded as acts instead of in Django's own log."""

    formfield_overrides = ROWS
    change_form_template = "admin/tasks_app/audited_form.html"

    class Media:
        css = {"all": ["taskdesk/admin.css"]}

    def read_values(self, obj: Any) -> dict[str, Any]:
        """Return the stored values of a row, from which an act has those that changed."""
        raise NotImplementedError

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows for operators of all tenants, and none for others."""
        return reach.limit(request.user, super().get_queryset(request))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and reach.read_reach(request.user).is_whole

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the form, or save it, unless the row was changed meanwhile, or no operator could give roles any more."""

        def view() -> HttpResponse:
            row = self.get_object(request, unquote(object_id)) if object_id else None
            values = self.read_values(row) if row else {}
            request.former = values  # type: ignore[attr-defined]  # for log_change
            # Read before Django reads the row for the form: a change between the two leads to a refusal, never to a
            # form that shows older values than its digest.
            digest = hashlib.sha256(orjson.dumps(values, option=orjson.OPT_SORT_KEYS)).hexdigest()
            if request.method == "POST" and row and self.has_change_permission(request, row):
                _check_digest(request.POST.get(DIGEST), digest)
            context = (extra_context or {}) | {"digest": digest}
            return super(Audited, self).changeform_view(request, object_id, form_url, context)

        return self._keep_a_giver(request, view)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Ask for the confirmation, or delete, unless then no operator could give roles any more."""
        return self._keep_a_giver(request, lambda: super(Audited, self).delete_view(request, object_id, extra_context))

    def _keep_a_giver(self, request: HttpRequest, view: Callable[[], HttpResponse]) -> HttpResponse:
        if request.method != "POST":
            return view()
        try:
            with users.keeping_a_giver(read_operator(request)):
                return view()
        except (users.UserRefused, IntegrityError) as error:
            refusal = _sentence_of(error) if isinstance(error, IntegrityError) else str(error)
            list(messages.get_messages(request))  # Reading drops the message of success, which is not true any more.
            self.message_user(request, refusal, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> None:  # type: ignore[override]  # no LogEntry
        record_acts(read_operator(request), "make", Change(obj, {}, self.read_values(obj)))

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> None:  # type: ignore[override]  # no LogEntry
        self.record_change(request, obj, changes=message)

    def record_change(self, request: HttpRequest, obj: Model, **more: Any) -> None:
        """Record the act of a change, with the values that differ from those before the form was saved."""
        former: dict[str, Any] = getattr(request, "former", {})
        values = self.read_values(obj)
        names = [name for name, value in former.items() if values[name] != value]
        before, after = ({name: each[name] for name in names} for each in (former, values))
        record_acts(read_operator(request), "change", Change(obj, before, after | more))

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:  # type: ignore[override]  # no LogEntry
        record_acts(read_operator(request), "delete", *(Change(row, self.read_values(row), {}) for row in queryset))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return redirect_to_acts(object_id)


class Link(Checked):
    """The principal in whose name a user calls."""

    principal = forms.CharField(max_length=64, help_text="The principal, which must exist.")
    tenant = forms.CharField(max_length=64, initial="default", help_text="The tenant of the principal.")
    scopes = forms.CharField(max_length=255, help_text="Separated by spaces; * is all.")


class ReachForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """The reach of an operator, with the checks that commands and the operators' API make, too."""

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if self.errors or not self.has_changed():
            return values  # An earlier version stored agents without tenants, and the account must still be changed.
        tenants = [tenant.name for tenant in values.get("tenants", ())]
        agents = values.get("agents", "").split()
        try:
            users.check_reach(
                users.NamedReach(tenants=tenants, all_tenants=values.get("all_tenants", False), agents=agents)
            )
        except users.UserRefused as refusal:
            raise forms.ValidationError(str(refusal)) from None
        return values | {"agents": " ".join(dict.fromkeys(agents))}


class ReachInline(admin.StackedInline):  # type: ignore[type-arg]  # not generic at run time
    """The tenants and agents of an operator, in the form of the account."""

    model = OperatorReach
    form = ReachForm
    filter_horizontal = ("tenants",)
    formfield_overrides = ROWS
    can_delete = True


@admin.register(User)
class OperatorAdmin(Audited, UserAdmin):  # type: ignore[type-arg]  # not generic at run time
    inlines = (ReachInline,)
    actions = ("reset_second_factor", "password", "link", "unlink")
    list_display = ("username", "show_last_login", "is_active", "is_staff", "is_superuser", "email")
    list_filter = ("is_active", "is_staff", "is_superuser")
    readonly_fields = ("show_link", "show_last_login", "show_joined")
    fieldsets = (*(UserAdmin.fieldsets or ())[:-1], ("Calls and times", {"fields": readonly_fields}))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Acts name their operator. A deleted name could be given to another person, so accounts are deactivated.
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Otherwise an administrator could become a superuser by the password of one.
        if obj is not None and obj.is_superuser and not getattr(request.user, "is_superuser", False):
            return False
        return super().has_change_permission(request, obj)

    def read_values(self, obj: User) -> dict[str, Any]:
        columns = ("email", "first_name", "last_name", "is_active", "is_staff", "is_superuser")
        values = {name: getattr(obj, name) for name in columns}
        groups = sorted(Group.objects.filter(user=obj).values_list("name", flat=True))
        return values | {"groups": groups, "permissions": names_of(obj.user_permissions)} | users.describe_reach(obj)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field and db_field.name in users.DETAILS:
            field.validators.append(check_printable)
        return field

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        # Roles are given by administrators, but only a superuser makes another, or gives single permissions. A name
        # stays, because acts name their operator: another person could get the former name.
        fields = (*super().get_readonly_fields(request, obj), *(("username",) if obj else ()))
        return fields if getattr(request.user, "is_superuser", False) else (*fields, "is_superuser", "user_permissions")

    def log_change(self, request: HttpRequest, obj: User, message: Any) -> None:  # type: ignore[override]  # no LogEntry
        # All access ends with the password, and with the account or its access: it may have both again later.
        match = request.resolver_match
        is_new_password = match is not None and match.url_name == "auth_user_password_change"
        has_lost_access = is_new_password or not (obj.is_active and obj.is_staff)
        tokens = 0
        if has_lost_access:
            tokens = users.end_access(obj)
        else:
            end_lost_approvals(obj)
        self.record_change(request, obj, changes=message, tokens=tokens)

    @admin.action(permissions=["change"], description="Reset the second factor of selected operators")
    def reset_second_factor(self, request: HttpRequest, queryset: QuerySet[User]) -> HttpResponse | None:
        """Remove devices and tokens after confirmation, so that their operators enrol others at the next login."""

        def reset(user: User, by: Operator) -> bool:
            if is_allowed := self.has_change_permission(request, user):
                second_factor.reset(user, by)
            return is_allowed

        return act_on_each(
            self,
            request,
            queryset,
            "reset_second_factor",
            reset,
            describe=lambda user: reveal(user.username),
            warning="Their devices and tokens are removed, and each operator enrols another device at the next page. "
            "Only a superuser resets a superuser.",
        )

    @admin.action(permissions=["change"], description="Give the selected operator a random password")
    def password(self, request: HttpRequest, queryset: QuerySet[User]) -> HttpResponse | None:
        """Give an operator a random password after confirmation, and show it once."""

        def reset(user: User, by: Operator, values: dict[str, Any]) -> str:
            return users.reset_password(by, user)

        warning = (
            "A random password is made and shown once. Sessions and tokens of the operator end, and so do those of the "
            "OAuth clients that the operator has approved."
        )
        return self._act(request, queryset, "password", reset, warning)

    @admin.action(permissions=["change"], description="Link the selected user to a principal")
    def link(self, request: HttpRequest, queryset: QuerySet[User]) -> HttpResponse | None:
        """Let a user call in the name of a principal, from pages of this server."""

        def link(user: User, by: Operator, values: dict[str, Any]) -> str:
            check_tenant(request, values["tenant"])
            users.link_user(by, user, **values)
            return ""

        warning = "Pages of this server may then call in the name of the principal when this user opens them."
        return self._act(request, queryset, "link", link, warning, Link)

    @admin.action(permissions=["change"], description="End the link of the selected user to a principal")
    def unlink(self, request: HttpRequest, queryset: QuerySet[User]) -> HttpResponse | None:
        """Let a user call in the name of a principal no more."""

        def unlink(user: User, by: Operator, values: dict[str, Any]) -> str:
            users.unlink_user(by, user)
            return ""

        return self._act(request, queryset, "unlink", unlink, "The user then calls in the name of no principal.")

    def _act(
        self,
        request: HttpRequest,
        queryset: QuerySet[User],
        name: str,
        verb: Callable[[User, Operator, dict[str, Any]], str],
        warning: str,
        form: type[forms.Form] = forms.Form,
    ) -> HttpResponse | None:
        """Perform the verb on the one user that was selected, as `act_on_one` does. Only a superuser changes one."""

        def change(user: User, by: Operator, values: dict[str, Any]) -> str:
            if not self.has_change_permission(request, user):
                raise ValueError("Only a superuser changes a superuser")
            return verb(user, by, values)

        def describe(user: User) -> str:
            return user.username

        return act_on_one(self, request, queryset, name, change, form=form, warning=warning, describe=describe)

    @admin.display(description="last login (UTC)")
    def show_last_login(self, row: User) -> str | None:
        return format_time(row.last_login) or None

    @admin.display(description="calls as")
    def show_link(self, row: User) -> str | None:
        link = users.describe_link_of(row)
        return reveal(f"{link['principal']} with {link['scopes']}") if link else None

    @admin.display(description="joined (UTC)")
    def show_joined(self, row: User) -> str:
        return format_time(row.date_joined)


class RoleForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A role, with the check of its name that commands and the operators' API make, too."""

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        try:
            check_name(name, self.instance if self.instance.pk else None)
        except users.UserRefused as refusal:
            raise forms.ValidationError(str(refusal)) from None
        return name


@admin.register(Group)
class OperatorGroupAdmin(Audited, GroupAdmin):
    form = RoleForm

    def log_change(self, request: HttpRequest, obj: Group, message: Any) -> None:  # type: ignore[override]  # no LogEntry
        end_lost_approvals(*obj.user_set.all())
        super().log_change(request, obj, message)

    def delete_model(self, request: HttpRequest, obj: Group) -> None:
        members = list(obj.user_set.all())
        super().delete_model(request, obj)
        end_lost_approvals(*members)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        # The names of two of the server's own decide what their operators see (reach.py), and `migrate` would make a
        # renamed one again.
        is_own = getattr(obj, "name", None) in ROLES
        return (*super().get_readonly_fields(request, obj), *(("name",) if is_own else ()))

    def read_values(self, obj: Group) -> dict[str, Any]:
        return {"name": obj.name, "permissions": names_of(obj.permissions)}

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        # Only the page of a group refuses to delete the last one that lets operators give roles.
        return {name: action for name, action in super().get_actions(request).items() if name != "delete_selected"}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # `migrate` would make it again.
        return super().has_delete_permission(request, obj) and not (obj is not None and obj.name in ROLES)
