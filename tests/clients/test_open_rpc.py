"""Descriptions in OpenRPC are valid by the schema of its specification, which npm has."""

from typing import Any

import pytest
from jsonschema import Draft7Validator
from referencing import Registry
from referencing.jsonschema import DRAFT7

from a2a.languages import DIALECTS
from tests.clients.environments import missing_node, open_rpc_schemas
from tests.support.descriptions import rpc_description
from tests.support.workers import NOT_TRIED

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def schemas(request: pytest.FixtureRequest) -> dict[str, Any]:
    if why := missing_node():
        pytest.skip(f"{NOT_TRIED}: the schemas of OpenRPC: {why}")
    return open_rpc_schemas(request.config.cache.mkdir("clients"))


@pytest.mark.parametrize("version", [None, *(dialect.version for dialect in DIALECTS)])
def test_a_description_is_valid_openrpc(schemas: dict[str, Any], version: str | None) -> None:
    contents = [(schema["$id"].rstrip("/"), DRAFT7.create_resource(schema)) for schema in schemas.values()]
    resources = [(name, content) for url, content in contents for name in (url, f"{url}/")]
    validator = Draft7Validator(schemas["open-rpc"], registry=Registry().with_resources(resources))
    document = rpc_description("rpc", version).document
    assert [error.message for error in validator.iter_errors(document)] == []
    for method in document["methods"]:
        wrong = document | {"methods": [{**method, "params": None}]}
        assert not validator.is_valid(wrong)
