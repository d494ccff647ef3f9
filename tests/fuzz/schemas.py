"""Hypothesis strategies from JSON Schemas, for the keywords that the descriptions of this server use.

They aim at valid values without a promise: a schema's `not`, for instance, is ignored. What is not valid must be
answered as well.
"""

from typing import Any

from hypothesis import strategies as st

from tests.transports.values import VALUES

Json = dict[str, Any]
TASK = "{task}"
"""Stands for the id of a task that exists."""
NAMED: dict[str, tuple[Any, ...]] = {
    "id": (TASK, TASK, "t"),
    "taskId": (TASK, TASK, "t"),
    "name": (f"tasks/{TASK}", "tasks/t/pushNotificationConfigs/c", "n"),
    "parent": (f"tasks/{TASK}",),
    "contextId": ("c", "ctx-1"),
    "tenant": ("home", ""),
    "url": ("https://hooks.invalid/x", "http://127.0.0.1:9/", "x"),
    "messageId": tuple(f"m{number}" for number in range(200)),
    "agent": ("echo", "nobody"),
    "task_id": (TASK, TASK, "t"),
    "tasks": ([TASK], [TASK, "t"]),
    "operation": ("echo", "nobody"),
    "workflowId": ("w", "w", "\u202e"),
    "namespace": ("n", "n", "m"),
    "key": ("k", "k", "l"),
    "ifVersion": (0, 1, 2**53),
    "ttl": (60, 0.001, 1e300),
    "thread_ts": ("1.0", "\0"),
    "attachments": ([{"name": "a", "content": "YQ=="}], [{"url": "https://files.invalid/x", "size": 2**40}], []),
    "metadata": ({"agent": "echo"}, {"k": "v"}, {}),
}
"""Values that lead further than chance would, by the name of their member. Any other value may come as well."""
TEXTS = st.sampled_from(["", "a", "home", "text/plain", "echo", TASK, "\0", "\u2028", "é", "9" * 40]) | st.text(
    max_size=8
)
DEEPEST = 8


class Schemas:
    """Strategies for the schemas of one document."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self.strategies: dict[str, st.SearchStrategy[Any]] = {}

    def values(self, schema: Json, depth: int = 0) -> st.SearchStrategy[Any]:
        """Return the strategy of a schema."""
        if "$ref" in schema:
            return self._referred(schema["$ref"], depth)
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        for word in ("anyOf", "oneOf"):
            if word in schema and "properties" not in schema:
                rest = {key: value for key, value in schema.items() if key != word}
                return st.one_of([self.values(rest | branch, depth) for branch in schema[word]])
        if "allOf" in schema:
            return st.tuples(*(self.values(part, depth) for part in schema["allOf"])).map(_merged)
        return self._of_type(schema, depth)

    def _referred(self, reference: str, depth: int) -> st.SearchStrategy[Any]:
        if depth > DEEPEST:
            return VALUES
        if reference not in self.strategies:
            target: Any = self.document
            for key in reference.removeprefix("#/").split("/"):
                target = target[key]
            # Schemas may refer to themselves.
            self.strategies[reference] = st.deferred(lambda: self.values(target, depth + 1))
        return self.strategies[reference]

    def _of_type(self, schema: Json, depth: int) -> st.SearchStrategy[Any]:
        kind = schema.get("type", "object" if "properties" in schema or "required" in schema else None)
        if isinstance(kind, list):
            return st.one_of([self.values(schema | {"type": each}, depth) for each in kind])
        match kind:
            case "object":
                return self._objects(schema, depth)
            case "array":
                items, least = self.values(schema.get("items", {}), depth + 1), schema.get("minItems", 0)
                return st.lists(items, min_size=least, max_size=max(least, 2))
            case "string":
                return _texts(schema)
            case "integer" | "number":
                return st.integers(schema.get("minimum"), schema.get("maximum"))
            case "boolean":
                return st.booleans()
            case "null":
                return st.none()
        return VALUES

    def _objects(self, schema: Json, depth: int) -> st.SearchStrategy[Json]:
        members = {name: self._member(name, each, depth) for name, each in schema.get("properties", {}).items()}
        needed = schema.get("required", ())
        return st.fixed_dictionaries(
            {name: members.get(name, VALUES) for name in needed},
            optional={name: each for name, each in members.items() if name not in needed},
        )

    def _member(self, name: str, schema: Json, depth: int) -> st.SearchStrategy[Any]:
        values = self.values(schema, depth + 1)
        return st.sampled_from(NAMED[name]) | values if name in NAMED else values


def _texts(schema: Json) -> st.SearchStrategy[str]:
    return st.from_regex(schema["pattern"]) if "pattern" in schema else TEXTS


def _merged(parts: tuple[Any, ...]) -> Any:
    """Return what is valid by all schemas, if these describe different members of an object."""
    if not all(isinstance(part, dict) for part in parts):
        return parts[0]
    return {name: value for part in parts for name, value in part.items()}
