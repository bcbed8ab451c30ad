"""Values that break readers, in every place where a request may carry one: no answer is a 5xx."""

import base64
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.factories import bearer, token_make
from tests.factories_runs import Swarm, run_make, signed, snapshot_make, snapshot_post, swarm_make
from tests.hostile.bytes_of_strangers import DEEP, TEXTS, json_values
from training.protocol.errors import ErrorCode, Problem
from training.protocol.names import TYP_CHECKPOINT, TYP_SNAPSHOT
from web.accounts.models import User
from web.runs.models import Run

pytestmark = pytest.mark.django_db
RUN = "/api/v1/runs/demo/"
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
examples = settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def swarm(alice: User, bob: User) -> Swarm:
    return swarm_make(run_make(alice), 1, users=[bob])


@pytest.fixture
def browser() -> Client:
    return Client(raise_request_exception=False)


@pytest.fixture
def headers(swarm: Swarm, bob: User) -> dict[str, str]:
    return bearer(token_make(bob, device=swarm.volunteers[0].device))


def answered(response: Any) -> Any:
    """Check that an answer is one of ours, with a remedy where it refuses; return it."""
    assert response.status_code < 500, response.content[:300]
    if response.status_code >= 400 and response.wsgi_request.path.startswith("/api/"):
        problem = Problem.model_validate_json(response.content)
        assert problem.code in set(ErrorCode)
        assert problem.remedy
    return response


def cursor_of(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


BODIES: dict[str, bytes] = {
    "endless nesting": DEEP,
    "deep nesting": b'{"epoch":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "huge integer": b'{"epoch":' + b"9" * 5000 + b"}",
    "number beyond columns": b'{"epoch":9223372036854775808}',
    "not a number": b'{"samples":NaN}',
    "infinity": b'{"samples":1e999}',
    "negative": b'{"samples":-1}',
    "not UTF-8": b'{"trainer_version":"\xff"}',
    "UTF-16": '{"epoch":1}'.encode("utf-16"),
    "half a surrogate": b'{"trainer_version":"\\ud800"}',
    "NUL": b'{"trainer_version":"\\u0000"}',
    "a form": b"epoch=1",
    "a list": b"[]",
    "nothing": b"",
}


@pytest.mark.parametrize("name", BODIES)
def test_a_bad_body_is_refused_with_a_remedy(
    browser: Client, headers: dict[str, str], name: str
) -> None:
    for kind in ("application/json", "text/plain", "multipart/form-data", "application/xml"):
        response = browser.post(RUN + "pass/", BODIES[name], kind, headers=headers)
        assert answered(response).status_code == 422


@examples
@given(body=st.dictionaries(st.sampled_from(["epoch", "samples", "state", "x"]), json_values))
def test_any_heartbeat_is_answered(
    browser: Client, headers: dict[str, str], body: dict[str, Any]
) -> None:
    text = json.dumps(body)
    answered(browser.post(RUN + "pass/", text, "application/json", headers=headers))


@examples
@given(
    path=st.sampled_from(["series", "leaderboard", "contributions", "events", "checkpoints",
                          "config", "why", "receipts"]),
    query=st.dictionaries(
        st.sampled_from(["metrics", "from", "to", "points", "by", "period", "limit", "cursor",
                         "format", "user", "version", "device", "lineage"]),
        st.text(max_size=30) | st.sampled_from(TEXTS) | st.integers().map(str)
        | st.datetimes().map(str) | json_values.map(json.dumps).map(cursor_of),
    ),
)  # fmt: skip
@example(path="series", query={"from": "9999-12-31T23:59:59-14:00"})
@example(path="series", query={"to": "0001-01-01T00:00:00+14:00"})
@example(path="checkpoints", query={"cursor": cursor_of('["0001-01-01T00:00:00+14:00",1]')})
@example(path="checkpoints", query={"cursor": cursor_of('["2020-01-01T00:00:00",1]')})
@example(path="events", query={"cursor": cursor_of("[Infinity,1e400]")})
@example(path="events", query={"cursor": cursor_of("[" * 290)})
@example(path="contributions", query={"user": "x" * 60_000})
def test_any_query_is_answered(
    browser: Client, headers: dict[str, str], path: str, query: dict[str, str]
) -> None:
    query = {key: value.encode("utf-8", "replace").decode() for key, value in query.items()}
    answered(browser.get(f"{RUN}{path}/", query, headers=headers))


PAGES: dict[str, Callable[[Client], Any]] = {
    "a name of 60,000 letters": lambda c: c.get(f"/users/{'x' * 60_000}/"),
    "a name with NUL": lambda c: c.get("/api/v1/users/%00/"),
    "a log-in of 100,000 letters": lambda c: c.post(
        "/accounts/login/", {"login": "x" * 100_000, "password": "y" * 100_000}
    ),
    "half an address after log-in": lambda c: c.get("/accounts/login/", {"next": "http://[evil"}),
    "half an address after sign-up": lambda c: c.get("/accounts/signup/", {"next": "//["}),
    "half an address after log-out": lambda c: c.post("/accounts/logout/", {"next": "http://["}),
    "a NUL in a query": lambda c: c.get("/runs/demo/leaderboard/", {"period": "\0"}),
    "a page in other digits": lambda c: c.get("/runs/demo/leaderboard/", {"page": "²"}),
    "a NUL in a cookie": lambda c: c.get("/", headers={"Cookie": 'sessionid="\\000aaaaaaaaaa"'}),
    "a NUL in a form": lambda c: c.post(
        "/identity/o/api/token", "client_id=%00&grant_type=refresh_token&refresh_token=x",
        "application/x-www-form-urlencoded",
    ),
    "a multipart without end": lambda c: c.post(
        "/identity/o/api/token", b"--x\r\nConte", "multipart/form-data; boundary=x"
    ),
    "a device code of nonsense": lambda c: c.post(
        "/identity/o/api/token", {"client_id": "beeyard-trainer", "grant_type": DEVICE_CODE,
                                  "device_code": "é" * 50}
    ),
    "a scope of nonsense": lambda c: c.post(
        "/identity/o/api/device/code", "client_id=beeyard-trainer&scope=%C3%A9+%27",
        "application/x-www-form-urlencoded",
    ),
    "a host of others": lambda c: c.get("/", headers={"Host": "evil.example"}),
    "half a host": lambda c: c.get("/api/v1/runs/", headers={"Host": "[::1"}),
    "a reset key of nonsense": lambda c: c.get(f"/accounts/password/reset/key/{'9' * 99}-x/"),
    "a file above": lambda c: c.get("/download/..%2f..%2fkeys%2fsite.jwk"),
    "a checkpoint above": lambda c: c.get(f"{RUN}checkpoints/1/..%2f..%2fkeys"),
    "an epoch beyond columns": lambda c: c.get(f"{RUN}checkpoints/{10**30}/x"),
    "a token of bytes": lambda c: c.get("/api/v1/me/", headers={"Authorization": "Bearer \xff"}),
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.usefixtures("swarm")
def test_a_bad_request_is_answered(browser: Client, name: str) -> None:
    answered(PAGES[name](browser))


def test_a_snapshot_of_any_numbers_is_taken_or_refused(browser: Client, swarm: Swarm) -> None:
    now = timezone.now()
    good = snapshot_make(swarm, now)
    edges: dict[str, tuple[Any, ...]] = {
        "epoch": (2**31 - 1, 2**31, 2**63, -1),
        "seq": (2**53 - 1, 2**53, 2**63),
        "lineage": (2**31, 2**63),
        "samples_accumulated": (2**53 - 1, 2**63),
        "samples_per_second": (1e16, 1e308),
        "loss": (1e39, -1e39, 1e308),
        "bootstrap_peers": (("x" * 5000,), ("\0",)),
    }
    for name, values in edges.items():
        for value in values:
            jws = signed(good.model_copy(update={name: value}), TYP_SNAPSHOT,
                         swarm.coordinator_key, now)  # fmt: skip
            assert answered(snapshot_post(browser, swarm, jws)).status_code in (200, 422)
            for page in ("/", "/runs/demo/", f"{RUN}state/", f"{RUN}series/"):
                assert answered(browser.get(page)).status_code == 200


def test_a_manifest_of_any_numbers_is_taken_or_refused(browser: Client, swarm: Swarm) -> None:
    from training.protocol.claims import CheckpointFile, CheckpointManifest

    now = timezone.now()
    good = CheckpointManifest(
        run="demo", lineage=1, config_version=1, epoch=1, saved_at=now,
        files=(CheckpointFile(name="a", sha256="0" * 64, size=1),),
    )  # fmt: skip
    file = CheckpointFile(name="a", sha256="0" * 64, size=1)
    changes: list[dict[str, Any]] = [
        {"epoch": 2**31 - 1}, {"epoch": 2**31}, {"epoch": 2**63}, {"config_version": 2**63},
        {"saved_at": now.replace(year=9999)}, {"saved_at": now - timedelta(days=365 * 60)},
        *({"files": (file.model_copy(update={"name": name}),)} for name in ("..", ".", "a/b", "")),
        {"files": (file.model_copy(update={"size": 2**63}),)},
    ]  # fmt: skip
    for change in changes:
        manifest = signed(
            good.model_copy(update=change), TYP_CHECKPOINT, swarm.coordinator_key, now
        )
        response = browser.post(
            f"{RUN}checkpoints/", {"manifest": manifest}, "application/json",
            headers=bearer(swarm.token),
        )  # fmt: skip
        assert answered(response).status_code == (200 if change == {"epoch": 2**31 - 1} else 422)


@pytest.mark.parametrize("text", [text for text in TEXTS if text])
def test_nothing_that_a_person_names_is_markup(
    browser: Client, swarm: Swarm, alice: User, text: str
) -> None:
    device = swarm.volunteers[0].device
    device.name = (text.replace("\0", "").encode("utf-8", "ignore").decode() or "x")[:80]
    device.save()
    Run.objects.update(title=device.name, state_reason=device.name)
    answered(snapshot_post(browser, swarm))
    browser.force_login(alice)
    for page in ("/", "/runs/demo/", "/control/", "/control/runs/demo/", "/devices/"):
        response = answered(browser.get(page))
        assert response.status_code == 200
        assert b"<script>x" not in response.content
