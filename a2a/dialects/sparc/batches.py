"""The batch method of SPARC: its params and its request. The result is the task of the batch."""

from typing import Annotated, Any, get_args

from msgspec import Struct

from a2a.batches import BatchInput, ExecuteBatch, Optimization
from a2a.dialects import v0_2
from a2a.dialects.json.json_0_x import decode_message
from a2a.dialects.params_0_x import MessageParams
from a2a.dialects.schemas import answers_0_x as types
from a2a.errors import InvalidParams
from a2a.language import Method
from a2a.params import Text, check, read_whole, rule
from a2a.types import Json

OPTIMIZATIONS: tuple[Optimization, ...] = get_args(Optimization)
_NUMBER = Annotated[int | float | None, rule(multipleOf=1, minimum=1)]


class ItemParams(Struct):
    message: MessageParams


class ConfigurationParams(Struct, rename="camel"):
    max_concurrent: _NUMBER = None
    batch_size: _NUMBER = None
    optimization: Annotated[str | None, rule(enum=[None, *OPTIMIZATIONS])] = None


class BatchParams(Struct, rename="camel"):
    operation: Text
    tasks: Annotated[list[str | ItemParams], rule(minItems=1)]
    configuration: ConfigurationParams | None = None
    metadata: Json | None = None


def decode_execute(params: Any) -> ExecuteBatch:
    """Decode the params of batchtools/execute. Raises InvalidParams."""
    wire = check(params, BatchParams)
    configuration = wire.get("configuration") or {}
    name = configuration.get("optimization") or OPTIMIZATIONS[0]
    optimization = next((one for one in OPTIMIZATIONS if one == name), None)
    if optimization is None:
        raise InvalidParams(("configuration.optimization", f"must be one of {', '.join(OPTIMIZATIONS)}"))
    return ExecuteBatch(
        operation=wire["operation"],
        items=tuple(_item(item, place) for place, item in enumerate(wire["tasks"])),
        max_concurrent=read_whole(configuration.get("maxConcurrent"), "configuration.maxConcurrent", 1),
        batch_size=read_whole(configuration.get("batchSize"), "configuration.batchSize", 1),
        optimization=optimization,
        metadata=wire.get("metadata"),
    )


def _item(item: str | Json, place: int) -> BatchInput:
    """Return an item: the id of a task, or the params of a message. Raises InvalidParams."""
    if isinstance(item, str):
        return BatchInput(task_id=item)
    return BatchInput(message=decode_message(item["message"], f"tasks[{place}].message"))


METHODS = {
    "batchtools/execute": Method(
        request=ExecuteBatch,
        decode=decode_execute,
        encode=v0_2.DIALECT.methods["tasks/get"].encode,
        params=BatchParams,
        result=types.Task,
    )
}
"""The method by its name."""
