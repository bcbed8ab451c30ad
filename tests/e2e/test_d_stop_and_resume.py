"""Ctrl-C leaves nothing behind, and the next start goes on."""

import pytest

from tests.e2e.installation import Installation, Person, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(420)]


def peer_ids(site: Installation) -> dict[str, str]:
    query = """select d.name, p.peer_id from monitoring_peer p
               join accounts_device d on d.id = p.device_id
               join accounts_user u on u.id = d.user_id where u.is_service = 1"""
    return {str(name): str(peer_id) for name, peer_id in site.rows(query)}


def test_a_stopped_site_leaves_no_process_and_goes_on_from_its_checkpoint(
    training_site: Installation,
) -> None:
    site = training_site
    epoch, ledger, identities = site.state()["epoch"], site.ledger(), peer_ids(site)
    organiser = site.organiser()
    assert (site.data / "organiser.json").stat().st_mode & 0o777 == 0o600

    assert site.stop() == 0
    assert not site.processes(), "processes remain after Ctrl-C"
    saved = site.rows("select max(epoch) from runs_checkpoint")[0][0]
    assert saved is not None
    assert saved >= epoch - 1, "the last checkpoint is old"

    site.start()
    wait_for("the site", lambda: site.get("/healthz"), 90)
    assert site.organiser() == organiser
    with Person(site, organiser["username"], organiser["password"]) as person:
        person.log_in()
    resumed = wait_for(
        "the next epoch", lambda: site.state() if site.state()["epoch"] > saved else None, 180
    )
    assert resumed["epoch"] >= saved + 1
    assert peer_ids(site) == identities
    now = site.ledger()
    assert all(now[key] == samples for key, samples in ledger.items())
