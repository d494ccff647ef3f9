"""What every page here has in common: rows are looked at, never added, changed or deleted by a form."""

from typing import Any, ClassVar, Generic, NamedTuple, TypeVar
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.text import capfirst

from a2a.errors import Error
from tasks_app.admin.paging import BELOW, NewestList
from tasks_app.admin.text import visible
from tasks_app.operators.audit import ADMIN, Operator

M = TypeVar("M", bound=Model)
BROKEN = (Error, KeyError, TypeError, ValueError, AttributeError)
"""What a stored document may raise when it is not what it should be. The page shows the rest even so."""


class Fact(NamedTuple):
    """A line at the head of a page."""

    label: str
    value: str
    href: str = ""


class ReadOnly(admin.ModelAdmin, Generic[M]):  # type: ignore[type-arg]  # not generic at run time
    """Lists and shows. What else an operator may do is an action with a permission of its own."""

    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # they count, filter by filter

    class Media:
        css: ClassVar = {"all": ["taskdesk/admin.css"]}

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow the parameters of the filters and of the link to older rows. With a lookup of their own choice viewers
        could find out, letter by letter, what no page shows."""
        filters = {getattr(found, "parameter_name", None) for found in self.get_list_filter(request)}
        return lookup == BELOW or lookup in filters

    def may_act(self, request: HttpRequest) -> bool:
        """Whether the user may act on rows of this kind: Django's change permission, which opens no form here."""
        name = f"{self.opts.app_label}.change_{self.opts.model_name}"
        return bool(getattr(request.user, "is_active", False) and request.user.has_perm(name))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return acts_of(unquote(object_id))

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        # Django would show the list again, as if nothing had been asked.
        if request.method == "POST" and not self.get_actions(request):
            raise PermissionDenied
        return super().changelist_view(request, extra_context)


class LogTable(ReadOnly[M]):
    """A long table with a page of our own for each row."""

    list_per_page = 50
    searched: int | None = None
    """Rows that the box finds at most; None: all that there are."""
    is_acted_on = True
    """There are acts on such rows."""
    at_once = 0
    """Rows that one action is done to at most."""
    ordering = ("-pk",)
    sortable_by = ()
    related: ClassVar[tuple[str, ...]] = ()
    """What the list and the page show of other tables."""
    search_fields = ("pk",)  # for the box to be there; get_search_results looks for exact ids

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[NewestList]:
        return NewestList

    def complete(self, rows: list[M]) -> None:
        """Add to the rows of one page of the list what it shows of other tables."""

    def page(self, request: HttpRequest, row: M) -> dict[str, Any]:
        """What the page of the row shows."""
        raise NotImplementedError

    def find(self, pk: str) -> M | None:
        """The row with all that its page needs."""
        # PostgreSQL refuses to look for U+0000.
        return None if "\0" in pk else self.get_queryset_for_page().filter(pk=pk).first()

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
        row = self.find(unquote(object_id))
        if row is None:
            return self.gone(request, object_id)
        request.current_app = self.admin_site.name  # as Django's own views do
        context = {
            **self.admin_site.each_context(request),
            "title": capfirst(self.opts.verbose_name),
            "subtitle": str(row),
            "opts": self.opts,
            "media": self.media,
            "original": row,
            "log": acts_of(str(row.pk)).url if self.is_acted_on else "",
            **self.page(request, row),
        }
        return TemplateResponse(request, f"admin/{self.opts.app_label}/{self.opts.model_name}/page.html", context)

    def gone(self, request: HttpRequest, pk: str) -> HttpResponse:
        """Back to the list, with a sentence."""
        sentence = f"There is no {self.opts.verbose_name} {visible(pk[:100])}, or it is no longer kept."
        self.message_user(request, sentence, messages.WARNING)
        return HttpResponseRedirect(reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"))


def acts_of(pk: str) -> HttpResponseRedirect:
    """Return the way to the list of what operators did to a row."""
    return HttpResponseRedirect(f"{reverse('admin:tasks_app_act_changelist')}?{urlencode({'q': pk})}")


def by(request: HttpRequest) -> Operator:
    """Return who acts, and for what reason, of a form of the admin."""
    reason = request.POST.get("reason", "").strip()[:255]
    return Operator(name=request.user.get_username(), door=ADMIN, reason=reason)


def link(model: str, pk: str) -> str:
    """The address of the page of a row."""
    return reverse(f"admin:tasks_app_{model}_change", args=[pk])


def confirmation(
    model_admin: "admin.ModelAdmin[Any]",
    request: HttpRequest,
    rows: list[tuple[str, str]],
    in_words: list[str],
    *,
    action: str,
    title: str,
    warning: str,
    harmless: bool = False,
) -> HttpResponse:
    """Return the page that asks back before an action: what it will be done to, and a button. Rows are (id, name)."""
    context = {
        **model_admin.admin_site.each_context(request),
        "title": title,
        "warning": warning,
        "rows": rows,
        "in_words": in_words,
        "harmless": harmless,
        "action": action,
        "opts": model_admin.opts,
        "media": model_admin.media,
    }
    return TemplateResponse(request, "admin/tasks_app/confirm.html", context)
