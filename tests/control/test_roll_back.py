"""Going back to a saved state at the desk, without blaming anybody."""

from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from tests.control.scenes import harmed_run
from tests.factories_runs import Swarm
from web.accounts.models import User
from web.contributions.models import ContributionTotal
from web.core.models import AuditEntry
from web.monitoring.models import RunEvent
from web.runs.selectors import config_current
from web.runs.services import run_transition

PAGE = "/control/runs/demo/checkpoints/1/2/roll-back/"


@pytest.fixture
def swarm(alice: User, bob: User, charlie: User) -> Swarm:
    return harmed_run(alice, [bob, charlie])


def test_the_effect_is_said_before_and_credit_stays(desk: Client, swarm: Swarm) -> None:
    before = dict(ContributionTotal.objects.values_list("user__username", "samples"))
    assert PAGE in desk.get("/control/runs/demo/checkpoints/").text
    asked = desk.get(PAGE).text
    assert "4 epochs of training since then are left behind" in asked
    assert "2 trainers load that state" in asked
    assert "1 later saved state is no longer offered" in asked
    assert config_current(swarm.run).lineage == 1, "asking changes nothing"
    assert "This field is required" in desk.post(PAGE, {"reason": ""}).text
    answer = desk.post(PAGE, {"reason": "the rate was too high"}, follow=True)
    assert "Lineage 2 begins at epoch 2" in answer.text
    assert config_current(swarm.run).lineage == 2
    assert dict(ContributionTotal.objects.values_list("user__username", "samples")) == before
    entry = AuditEntry.objects.get(code="run.rolled.back")
    assert (entry.data["epoch"], entry.data["reason"]) == (2, "the rate was too high")
    event = RunEvent.objects.get(kind="run.rolled_back")
    assert event.text == "alice rolled the run back to epoch 2: the rate was too high"


def test_files_of_a_state_are_those_of_its_lineage(
    desk: Client, swarm: Swarm, settings: Settings, tmp_path: Path
) -> None:
    settings.CHECKPOINTS_DIR = tmp_path
    state = swarm.run.checkpoints.get(epoch=2)
    state.files = [{"name": "model.safetensors", "size": 9, "sha256": "a" * 64}]
    state.save()
    pages = ("/control/runs/demo/", "/control/runs/demo/checkpoints/", "/runs/demo/")
    for page in pages:
        text = desk.get(page).text
        assert "/checkpoints/2/model.safetensors?lineage=1" not in text, f"{page}: it is not here"
        assert "model.safetensors" in text, page
    (tmp_path / "demo" / "1-00000002").mkdir(parents=True)
    (tmp_path / "demo" / "1-00000002" / "model.safetensors").write_bytes(b"x")
    for page in pages:
        assert "/checkpoints/2/model.safetensors?lineage=1" in desk.get(page).text, page


def test_a_run_that_is_over_and_a_state_that_is_gone_stay_as_they_are(
    desk: Client, swarm: Swarm, alice: User
) -> None:
    assert desk.post(PAGE.replace("/2/", "/3/"), {"reason": "x"}).status_code == 404
    swarm.run.refresh_from_db()
    run_transition(alice, swarm.run, "finish")
    type(swarm.run).objects.update(state="finished")
    assert desk.post(PAGE, {"reason": "x"}).status_code == 409
    assert config_current(swarm.run).lineage == 1
