"""The base of all admin pages: rows are shown, and no form adds, changes or deletes one."""

from collections.abc import Iterable
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.admin.widgets import ForeignKeyRawIdWidget
from django.core.exceptions import BadRequest, PermissionDenied, ValidationError
from django.db.models import CharField, Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import capfirst

from tasks_app.admin.paging import BELOW, NewestList
from tasks_app.admin.selection import Selecting, find_wrong_reason
from tasks_app.admin.text import format_owner, reveal
from tasks_app.operators import reach
from tasks_app.operators.audit import ADMIN, Operator, operator_of

M = TypeVar("M", bound=Model)


class Fact(NamedTuple):
    """A label and its value at the top of a page, with an optional link."""

    label: str
    value: str
    href: str = ""


class PlainId(ForeignKeyRawIdWidget):
    """The field of a foreign key by its id, without the name of the row, which may be one of another tenant."""

    def label_and_url_for_value(self, value: Any) -> tuple[str, str]:
        return "", ""


class ReadOnly(Selecting, Generic[M]):
    """An admin of rows that can be viewed but not edited. Anything else is an action with a permission of its own."""

    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # facets run a count for each value of each filter

    class Media:
        css: ClassVar = {"all": ["taskdesk/admin.css"]}

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        return None if "\0" in object_id else super().get_object(request, object_id, from_field)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[M]:
        """Return the rows that the operator may see: those of their tenants and agents."""
        return reach.limit(request.user, super().get_queryset(request))

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Return the field of a form, which takes only rows that the operator may see."""
        kwargs["queryset"] = reach.limit(request.user, db_field.remote_field.model._default_manager.all())
        if db_field.name in self.raw_id_fields:
            kwargs["widget"] = PlainId(db_field.remote_field, self.admin_site)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def is_limited(self, request: HttpRequest) -> bool:
        """Return whether the operator sees some of the rows only, of a table whose ids begin with the time."""
        return isinstance(self.opts.pk, CharField) and reach.is_limited(request.user, self.model)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow only the parameters of the filters and of the link to older rows.

        A free choice of lookups (`url__startswith=a`) would let viewers guess hidden columns letter by letter.
        """
        filters = {getattr(each, "parameter_name", None) for each in self.get_list_filter(request)}
        return lookup == BELOW or lookup in filters

    def may_act(self, request: HttpRequest) -> bool:
        """Return whether the user may act on these rows. It takes Django's change permission, which opens no form."""
        name = f"{self.opts.app_label}.change_{self.opts.model_name}"
        return bool(getattr(request.user, "is_active", False) and request.user.has_perm(name))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return redirect_to_acts(unquote(object_id))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        # Without actions Django would ignore the POST and show the list.
        if request.method == "POST" and not self.get_actions(request):
            raise PermissionDenied
        return super().changelist_view(request, extra_context)


class LogTable(ReadOnly[M]):
    """An admin of a long table, with our own page for each row."""

    list_per_page = 50
    max_found: int | None = None
    """Rows that the search box finds at most; None for no limit."""
    has_acts = True
    """True if operators can act on the rows, so that their pages link to the record of acts."""
    max_selected = 0
    """Rows that one action takes at most."""
    ordering = ("-pk",)
    sortable_by = ()
    related: ClassVar[tuple[str, ...]] = ()
    """Foreign keys whose rows the list and the page show."""
    search_fields = ("pk",)  # makes Django show the search box; get_search_results compares exact ids

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[NewestList]:
        return NewestList

    @admin.display(description="owner")
    def show_owner(self, row: Any) -> str:
        return format_owner(row)

    def add_columns(self, request: HttpRequest, rows: list[M]) -> None:
        """Set attributes on the rows of one page of the list, for columns from other tables."""

    def build_page(self, request: HttpRequest, row: M) -> dict[str, Any]:
        """Return the template context of the row's page."""
        raise NotImplementedError

    def find(self, request: HttpRequest, pk: str) -> M | None:
        """Return the row with the related rows that its page needs; None if the operator may not see it."""
        # PostgreSQL refuses to search for U+0000.
        if "\0" in pk:
            return None
        try:
            key = self.opts.pk.to_python(pk)
        except ValidationError:
            return None
        row: M | None = reach.limit(request.user, self.get_queryset_for_page()).filter(pk=key).first()
        return row

    def select_visible(self, request: HttpRequest, ids: Iterable[str]) -> list[str]:
        """Return those of the ids whose rows the operator may see, in their order."""
        keys = [id for id in ids if "\0" not in id]
        rows = reach.limit(request.user, self.model._default_manager.filter(pk__in=keys))
        visible = set(rows.values_list("pk", flat=True))
        return [id for id in keys if id in visible]

    def get_queryset_for_page(self) -> Any:
        return self.model._default_manager.select_related(*self.related)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if request.method not in {"GET", "HEAD"} or not self.has_view_permission(request):
            raise PermissionDenied
        row = self.find(request, unquote(object_id))
        if row is None:
            return self.redirect_missing(request, object_id)
        request.current_app = self.admin_site.name  # as Django's own views do
        context = {
            **self.admin_site.each_context(request),
            "title": capfirst(self.opts.verbose_name),
            "subtitle": str(row),
            "opts": self.opts,
            "media": self.media,
            "original": row,
            "log": redirect_to_acts(str(row.pk)).url if self.has_acts else "",
            **self.build_page(request, row),
        }
        return TemplateResponse(request, f"admin/{self.opts.app_label}/{self.opts.model_name}/page.html", context)

    def redirect_missing(self, request: HttpRequest, pk: str) -> HttpResponse:
        """Redirect to the list with a message that the row does not exist."""
        message = f"There is no {self.opts.verbose_name} {reveal(pk[:100])}, or it was deleted because of its age."
        self.message_user(request, message, messages.WARNING)
        return HttpResponseRedirect(reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"))


def redirect_to_acts(pk: str) -> HttpResponseRedirect:
    """Redirect to the list of operators' acts on a row."""
    return HttpResponseRedirect(f"{reverse('admin:tasks_app_act_changelist')}?{urlencode({'q': pk})}")


def read_operator(request: HttpRequest) -> Operator:
    """Return the logged-in operator, with the reason from the submitted form.

    Raises BadRequest for a reason that the form itself did not refuse.
    """
    if problem := find_wrong_reason(request):
        raise BadRequest(problem)
    return operator_of(request, ADMIN, request.POST.get("reason", ""))


def link(model: str, pk: str) -> str:
    """Return the link to the page of a row."""
    return reverse(f"admin:tasks_app_{model}_change", args=[pk])


def confirm(
    model_admin: "admin.ModelAdmin[Any]",
    request: HttpRequest,
    rows: list[tuple[str, str]],
    summary: list[str],
    *,
    action: str,
    title: str,
    warning: str,
    harmless: bool = False,
    form: forms.Form | None = None,
) -> HttpResponse:
    """Render the page that asks for confirmation of an action: a summary, all rows as (id, name), and a button.

    `form` asks for the values that the action needs.
    """
    context = {
        **model_admin.admin_site.each_context(request),
        "title": title,
        "warning": warning,
        "rows": rows,
        "summary": summary,
        "harmless": harmless,
        "form": form,
        "action": action,
        "opts": model_admin.opts,
        "media": model_admin.media,
    }
    return TemplateResponse(request, "admin/tasks_app/confirm.html", context)
