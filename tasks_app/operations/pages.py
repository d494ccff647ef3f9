"""Pages of tasks, newest status first, with signed page tokens and bounded totals (A2A 1.0, 3.1.4)."""

from msgspec import Struct
from msgspec.structs import replace

from a2a.answers import TaskPage
from a2a.documents import TaskDocument
from a2a.requests import ListTasks
from tasks_app.callers.access import Caller
from tasks_app.event_log import fold, read_tails
from tasks_app.operations.list_filters import Filters
from tasks_app.operations.list_rows import NEWEST_FIRST, Row, find_rows, read_page
from tasks_app.operations.list_totals import count_tasks, find_leader


class Draft(Struct, frozen=True):
    """A page whose large tasks are not read yet."""

    request: ListTasks
    filters: Filters
    binding: str
    rows: list[Row]
    """The rows that may be on the page, and one more if others follow."""

    @property
    def is_large(self) -> bool:
        """Whether a task is so large that it must not be read beside the lists of others."""
        return any(row.is_large for row in self.rows)

    def finish(self) -> TaskPage:
        """Read the large tasks and return the page."""
        rows, last = read_page(self.request, self.rows)
        is_whole = not self.request.page_token and last is None
        return TaskPage(
            tasks=_documents(rows, self.request.include_artifacts),
            next_page_token=NEWEST_FIRST.encode(last, self.binding) if last else "",
            total_size=len(rows) if is_whole else count_tasks(self.filters, self.binding),
            history_length=self.request.history_length,
            include_artifacts=self.request.include_artifacts,
        )


def begin_page(request: ListTasks, caller: Caller, agent: str | None) -> Draft | TaskPage:
    """Return one page of the caller's tasks; its draft if a task is large.

    Raises InvalidParams for a page token of another list.
    """
    filters = Filters(
        tenant_id=caller.tenant_id,
        owner_id=caller.owner_id,
        agent=agent,
        context_id=request.context_id,
        state=request.state and request.state.value,
        since=request.since,
    )
    binding = filters.binding()
    filters = find_leader(filters)
    start = NEWEST_FIRST.decode(request.page_token, binding) if request.page_token else None
    draft = Draft(request, filters, binding, find_rows(request, filters, start))
    return draft if draft.is_large else draft.finish()


def _documents(rows: list[Row], include_artifacts: bool) -> tuple[TaskDocument, ...]:
    """Return the documents as of each row's last event. One statement reads the tails of all running tasks."""
    tails = read_tails([(row.id, row.snapshot_seq, row.last_seq) for row in rows if row.snapshot_seq < row.last_seq])
    documents = []
    for row in rows:
        document = TaskDocument(
            id=row.id,
            context_id=row.context_id,
            seq=row.last_seq,
            state=row.state,
            status=row.status,
            metadata=row.metadata,
            artifacts=row.artifacts if include_artifacts else None,
            history=row.history,
        )
        if tail := tails.get(row.id):
            document = fold(replace(document, status=row.snapshot_status or row.status), tail)
            if not include_artifacts:
                document = replace(document, artifacts=None)
        documents.append(document)
    return tuple(documents)
