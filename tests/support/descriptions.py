"""Descriptions of the server as tests use them: is a call, an answer or an event as they say?"""

import re
from functools import cache
from typing import Any

import orjson
from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator

from a2a import languages
from a2a.descriptions.openrpc import openrpc
from a2a.languages import Languages
from a2a.requests import Describe
from tasks_app.descriptions import pages
from tasks_app.operations.dispatcher import scope_of

Json = dict[str, Any]
DRAFTS: tuple[type[Validator], ...] = (Draft7Validator, Draft202012Validator)
"""Drafts of JSON Schema: OpenRPC 1.3 reads the one, OpenAPI 3.1 the other."""


class Misdescribed(AssertionError):
    """A value that is not as its description says."""


class Described:
    """The schemas of a document."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self.validators: dict[tuple[bytes, type[Validator]], Validator] = {}

    def fault(self, schema: Json, value: Any, draft: type[Validator] = Draft202012Validator) -> str:
        """Return what is wrong with a value by a schema of the document; empty if nothing is."""
        key = orjson.dumps(schema), draft
        if key not in self.validators:
            self.validators[key] = draft({"components": self.document["components"], **schema})
        wrong = best_match(self.validators[key].iter_errors(value))
        return "" if wrong is None else f"{wrong.json_path}: {wrong.message}"

    def check(self, schema: Json, value: Any, what: str) -> None:
        """Raise Misdescribed with the first fault."""
        if wrong := self.fault(schema, value):
            raise Misdescribed(f"{what}: {wrong}\nin {value}")


class RpcDescription(Described):
    """An endpoint, in OpenRPC."""

    def __init__(self, document: Json) -> None:
        super().__init__(document)
        self.methods: dict[str, Json] = {method["name"]: method for method in document["methods"]}
        codes = {key: error["code"] for key, error in document["components"]["errors"].items()}
        self.codes = {
            name: {codes[each["$ref"].removeprefix("#/components/errors/")] for each in method["errors"]}
            for name, method in self.methods.items()
        }

    def language(self, name: str) -> str:
        """Return the language of a method."""
        tag: str = self.methods[name]["tags"][0]["name"]
        return tag

    def check_params(self, name: str, params: Any) -> None:
        """Check params that were accepted."""
        self.check(self.methods[name]["x-params"], {} if params is None else params, f"the params of {name}")
        for member in self.methods[name]["params"]:
            if member["name"] in params or member["required"]:
                self.check(member["schema"], params[member["name"]], f"{member['name']} of {name}")

    def check_answer(self, name: str, answer: Json) -> None:
        """Check the result or the error of an answer, or one event of a stream."""
        if name not in self.methods:
            self.check({"anyOf": list(self.document["x-errors"].values())}, answer["error"], f"the error of {name}")
        elif "error" in answer:
            self.check(self.document["x-errors"][self.language(name)], answer["error"], f"the error of {name}")
            code = answer["error"].get("code")  # The schema says whether there must be one.
            if code is not None and code not in self.codes[name]:
                raise Misdescribed(f"{name}: no error has the code {code}")
        else:
            self.check(self.methods[name]["result"]["schema"], answer["result"], f"the result of {name}")


def rpc_description(endpoint: str = "rpc", version: str | None = None) -> RpcDescription:
    """Return the description of an endpoint, as calls with this A2A-Version get it."""
    return _rpc_description(languages.ALL, endpoint, version)


@cache
def _rpc_description(spoken: Languages, endpoint: str, version: str | None) -> RpcDescription:
    info = {"title": "test", "version": "0"}
    return RpcDescription(orjson.loads(orjson.dumps(openrpc(spoken.endpoints[endpoint], version, info, scope_of))))


class RestDescription(Described):
    """All paths of HTTP, in OpenAPI."""

    def __init__(self, document: Json) -> None:
        super().__init__(document)
        self.patterns = {
            path: re.compile(
                "".join("[^/]*" if piece[0] == "{" else re.escape(piece) for piece in _PIECE.findall(path))
            )
            for path in sorted(document["paths"], key=lambda path: path.count("{"))
        }

    def operation(self, verb: str, path: str) -> Json | None:
        """Return the operation of a call, None if the path does not exist."""
        for template, pattern in self.patterns.items():
            if pattern.fullmatch(path.partition("?")[0]):
                operation: Json | None = self.document["paths"][template].get(verb.lower())
                return operation
        return None

    def check_body(self, verb: str, path: str, body: bytes) -> None:
        """Check a body that was accepted."""
        operation = self.operation(verb, path)
        assert operation is not None, f"{verb} {path} was accepted and is not described"
        if body or operation.get("requestBody", {}).get("required"):
            content = operation["requestBody"]["content"]["application/json"]
            self.check(content["schema"], orjson.loads(body), f"the body of {verb} {path}")

    def check_answer(self, verb: str, path: str, status: int, media: str, answer: Any) -> None:
        """Check the body of an answer."""
        operation = self.operation(verb, path)
        if operation is None:
            if status not in (404, 405):
                raise Misdescribed(f"{verb} {path} is not described, and was answered with {status}")
            return
        response = operation["responses"].get(str(status), operation["responses"].get("default"))
        if "$ref" in response:
            response = self.document["components"]["responses"][response["$ref"].rpartition("/")[2]]
        if media not in response["content"]:
            raise Misdescribed(f"{verb} {path} was answered with {media}, not {list(response['content'])}")
        self.check(response["content"][media]["schema"], answer, f"the answer {status} of {verb} {path}")

    def check_event(self, verb: str, path: str, event: Json) -> None:
        """Check one event of a stream."""
        operation = self.operation(verb, path)
        assert operation is not None
        content = operation["responses"]["200"]["content"]["text/event-stream"]
        self.check(content["x-event"], event, f"an event of {verb} {path}")


_PIECE = re.compile(r"\{\w+\}|[^{]+")


def rest_description() -> RestDescription:
    """Return the description of all paths."""
    return _rest_description(languages.ALL)


@cache
def _rest_description(spoken: Languages) -> RestDescription:
    return RestDescription(orjson.loads(pages.describe(Describe(form="openapi"), None, scope_of).body))
