"""Every refusal of every call is a problem document, whoever refuses."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import include, path
from redis.exceptions import ConnectionError as RedisConnectionError

from tests.factories import bearer, token_make
from training.protocol.errors import ErrorCode, Problem
from web.accounts.models import User
from web.api.urls import api

pytestmark = pytest.mark.django_db
SCHEMA = json.loads(json.dumps(api.get_openapi_schema()))
FILLINGS = {"int": "7", "string": "no-such-thing", "integer": "7"}


def operations() -> Iterator[Any]:
    for route, methods in SCHEMA["paths"].items():
        for method, operation in methods.items():
            yield pytest.param(route, method, operation, id=f"{method.upper()} {route}")


def filled(route: str, operation: dict[str, Any]) -> str:
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            kind = parameter["schema"].get("type", "string")
            route = route.replace(f"{{{parameter['name']}}}", FILLINGS[kind])
    assert "{" not in route
    return route


def problem_of(response: Any) -> Problem:
    assert response["Content-Type"] == "application/problem+json", response.content[:200]
    body = json.loads(response.content)
    problem = Problem.model_validate(body)
    assert problem.status == response.status_code
    assert problem.code in set(ErrorCode)
    assert problem.title
    assert problem.remedy
    assert problem.type.startswith("urn:beeyard:problem:")
    assert "Traceback" not in str(body)
    return problem


@pytest.mark.parametrize(("route", "method", "operation"), list(operations()))
def test_garbage_gets_a_problem_or_a_proper_answer(
    client: Client, bob: User, route: str, method: str, operation: dict[str, Any]
) -> None:
    address = filled(route, operation)
    good = bearer(token_make(bob))
    attempts = [
        getattr(client, method)(address),
        getattr(client, method)(address, headers=bearer("by_nonsense")),
        getattr(client, method)(address, headers={"Authorization": "nonsense"}),
        getattr(client, method)(address, headers=good),
    ]
    if method != "get":
        for body in ("{not json", "[]", '{"unknown": 1}', "\x00"):
            options = {"data": body, "content_type": "application/json", "headers": good}
            attempts.append(getattr(client, method)(address, **options))
    refused = [response for response in attempts if response.status_code >= 400]
    assert refused or "security" not in operation
    for response in refused:
        assert response.status_code < 500
        problem_of(response)


@pytest.mark.parametrize("route", sorted(SCHEMA["paths"]))
def test_a_method_that_is_not_offered_is_a_problem(client: Client, route: str) -> None:
    methods = SCHEMA["paths"][route]
    response = client.put(filled(route, next(iter(methods.values()))))
    assert problem_of(response).code == ErrorCode.METHOD_NOT_ALLOWED
    assert {name.strip().lower() for name in response["Allow"].split(",")} == set(methods)


@pytest.mark.parametrize("address", ["/api/", "/api/v1/", "/api/v2/runs/", "/api/v1/x/%00/"])
def test_an_unknown_address_is_a_problem(client: Client, address: str) -> None:
    assert problem_of(client.get(address)).code == ErrorCode.NOT_FOUND


def test_a_body_that_does_not_fit_names_its_fields(client: Client, bob: User, alice: User) -> None:
    from tests.factories_runs import run_make

    run_make(alice, slug="one")
    body = {"peer_id": "short", "hardware": {"cpus": -1}}
    response = client.post(
        "/api/v1/runs/one/join/", body, "application/json", headers=bearer(token_make(bob))
    )
    assert problem_of(response).code == ErrorCode.BODY_INVALID
    paths = {field["path"] for field in response.json()["errors"]}
    assert {"body.peer_id", "body.hardware.cpus", "body.device_proof"} <= paths
    assert "short" not in str(response.json()["errors"])


def test_a_body_above_the_limit_is_refused(client: Client, bob: User, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    response = client.post(
        "/api/v1/runs/one/join/",
        "x" * 2000,
        "application/json",
        headers=bearer(token_make(bob)),
    )
    assert problem_of(response).code == ErrorCode.BODY_TOO_LARGE


def _api_with_faults() -> Any:
    from ninja import NinjaAPI
    from ninja.errors import HttpError

    from web.api.errors import error_handlers_add

    faulty = NinjaAPI(urls_namespace="faulty", openapi_url=None)
    error_handlers_add(faulty)

    @faulty.get("crash/")
    def crash(request: Any) -> None:
        raise RuntimeError("secret detail")

    @faulty.get("teapot/")
    def teapot(request: Any) -> None:
        raise HttpError(418, "secret detail")

    @faulty.get("outage/")
    def outage(request: Any) -> None:
        raise RedisConnectionError("10.0.0.7 is away")

    return faulty.urls


urlpatterns = [path("api/", include((_api_with_faults()[0], "faulty")))]


@pytest.mark.urls(__name__)
def test_an_unexpected_error_tells_nothing_and_is_logged(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    problem = problem_of(client.get("/api/crash/"))
    assert problem.code == ErrorCode.INTERNAL_ERROR
    assert "secret detail" not in str(problem)
    assert "secret detail" in caplog.text


@pytest.mark.urls(__name__)
def test_an_outage_says_when_to_come_back(client: Client) -> None:
    response = client.get("/api/outage/")
    assert problem_of(response).code == ErrorCode.SERVICE_UNAVAILABLE
    assert response["Retry-After"] == "5"
    assert b"10.0.0.7" not in response.content


@pytest.mark.urls(__name__)
def test_an_unusual_status_keeps_its_number(client: Client) -> None:
    assert problem_of(client.get("/api/teapot/")).status == 418


def test_the_document_is_openapi_31_and_every_call_has_words() -> None:
    assert SCHEMA["openapi"].startswith("3.1")
    for methods in SCHEMA["paths"].values():
        for operation in methods.values():
            assert operation["description"]
            assert operation["tags"]


def test_the_browsable_documentation_runs_under_the_content_policy(client: Client) -> None:
    page = client.get("/api/v1/docs")
    text = page.content.decode()
    assert page.status_code == 200
    assert "/static/ninja/swagger-ui-bundle.js" in text
    assert "http://" not in text
    assert "https://" not in text
    assert "<style" not in text
    assert text.count("<script") == 3
    assert text.count("<script src=") == 2
    assert '<script type="application/json"' in text
    assert client.get("/api/v1/openapi.json").json()["info"]["title"] == "Beeyard"
