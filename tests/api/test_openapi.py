"""The OpenAPI document tells all that is served, with examples that hold."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import jsonschema_rs
import pytest

from .conftest import Site
from .town import Town, routes_of

FILE = Path(__file__).parents[2] / "docs" / "openapi.json"
DOCUMENT: dict[str, Any] = json.loads(FILE.read_text())
PROBLEM = "application/problem+json"
NO_EXAMPLE = ("multipart/", "application/vnd.")
"""Bytes, and what takes its examples from its parts."""


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            yield f"{method.upper()} {path}", operation


def test_a_service_serves_the_document_that_is_checked_in(site: Site) -> None:
    assert site.client.get("/openapi.json").json() == DOCUMENT


def test_every_route_is_told(town: Town) -> None:
    told = {(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item}
    served = {(method, path) for method, path in routes_of(town.app) if path != "/openapi.json"}
    assert served == {(method, path) for method, path in told if method not in ("HEAD", "OPTIONS")}


def test_clients_can_be_generated() -> None:
    """Operations have unique names, a description and a tag that is explained; all that they refer to is there."""
    tags = {tag["name"] for tag in DOCUMENT["tags"] if tag["description"]}
    names = [operation["operationId"] for _, operation in operations()]
    assert len(set(names)) == len(names)
    for name, operation in operations():
        assert operation["summary"], name
        assert operation["description"], name
        assert set(operation["tags"]) <= tags, name
        placed = {each["name"] for each in operation.get("parameters", []) if each["in"] == "path"}
        assert all(each["description"] for each in operation.get("parameters", [])), name
        assert placed == {part[1:-1] for part in name.split("/") if part.startswith("{")}, name
        for answer in operation["responses"].values():
            linked = {link["operationId"] for link in answer.get("links", {}).values()}
            assert linked <= set(names), name
    assert all(found(part["$ref"]) for part in objects(DOCUMENT) if "$ref" in part)


def test_every_operation_tells_what_may_go_wrong() -> None:
    for name, operation in operations():
        problems = {status: resolved(answer) for status, answer in operation["responses"].items() if status >= "400"}
        if "/v1/" in name:
            assert operation["security"] == [{"key": []}], name
            assert set(problems) >= {"401", "403", "429", "500", "503"}, name
        for status, answer in problems.items():
            if name == "GET /health/ready":
                continue
            examples = [each["value"] for each in answer["content"][PROBLEM]["examples"].values()]
            assert examples, (name, status)
            assert {str(example["status"]) for example in examples} == {status}, name
            assert all(example["code"] in answer["description"] for example in examples), name


def test_every_body_and_answer_has_an_example_that_holds() -> None:
    for name, content in contents():
        for kind, media in content.items():
            schema, items = media["schema"], media["schema"].get("items", {})
            given = [each["value"] for each in media.get("examples", {}).values()]
            given += [media["example"]] if "example" in media else []
            given += found(schema["$ref"]).get("examples", []) if "$ref" in schema else []
            given += [found(items["$ref"])["examples"]] if "$ref" in items else []
            assert given or kind.startswith(NO_EXAMPLE), (name, kind)
            for example in given:
                check(schema, example)


def contents() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, operation in operations():
        for part in (operation.get("requestBody", {}), *map(resolved, operation["responses"].values())):
            yield name, part.get("content", {})


def test_examples_of_schemas_parameters_and_headers_hold() -> None:
    having = [part for part in objects(DOCUMENT) if isinstance(part.get("examples"), list)]
    checked = [check(schema, example) for schema in having for example in schema["examples"]]
    assert len(checked) > 50
    for header in DOCUMENT["components"]["headers"].values():
        check(header["schema"], header["example"])


def test_an_example_that_does_not_hold_is_found() -> None:
    with pytest.raises(jsonschema_rs.ValidationError):
        check({"$ref": "#/components/schemas/JobAnswer"}, {"id": "x"})


def objects(part: Any) -> Iterator[dict[str, Any]]:
    """All objects of a document."""
    if isinstance(part, dict):
        one = cast("dict[str, Any]", part)  # it was JSON
        yield one
        part = list(one.values())
    if isinstance(part, list):
        for inner in cast("list[Any]", part):
            yield from objects(inner)


def check(schema: Any, example: Any) -> None:
    whole = {**schema, "components": DOCUMENT["components"]}
    jsonschema_rs.Draft202012Validator(whole, validate_formats=True).validate(example)


def found(ref: str) -> Any:
    part: Any = DOCUMENT
    for name in ref.removeprefix("#/").split("/"):
        part = part[name]
    return part


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    return found(part["$ref"]) if "$ref" in part else part
