"""The operation on descriptions of what can be asked."""

from a2a import languages
from a2a.agents import registry
from a2a.choice import minor, version_error
from a2a.errors import UnknownAgent
from a2a.requests import Describe
from tasks_app.callers.permissions import may_see
from tasks_app.descriptions import pages
from tasks_app.off_loop import off_loop
from tasks_app.operations.operation import Await, Context, Done, Grant


async def describe(request: Describe, context: Context, scope_of: pages.ScopeOf) -> Grant:
    """Return a description of what can be asked. Raises UnknownAgent and VersionNotSupported."""
    if context.agent and (registry.get(context.agent) is None or not may_see(context.caller, context.agent)):
        raise UnknownAgent(agent=context.agent[:64])
    dialects = languages.ALL.dialects
    if request.version and minor(request.version) not in {dialect.version for dialect in dialects}:
        raise version_error(request.version, dialects)
    # The first description of a process is made of all tables, which takes dozens of milliseconds.
    return Done(await Await(lambda: off_loop(pages.describe, request, context.agent, scope_of)))
