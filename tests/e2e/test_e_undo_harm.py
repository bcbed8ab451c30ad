"""The real site rolls a real swarm back, and gives no secret away on the way."""

import json
import re
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.installation import RUN, Installation, Person, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
UNDO = f"/control/runs/{RUN}/undo/"
ENTRIES = "select samples from contributions_ledgerentry where device_id = ? and corrects_id is {}"


def secrets_of(site: Installation) -> dict[str, str]:
    """Return every secret of the installation by the file that it lies in."""
    found: dict[str, str] = {"organiser": site.organiser()["password"]}
    for path in site.data.rglob("*"):
        name = str(path.relative_to(site.data))
        if path.suffix == ".jwk":
            found[name] = json.loads(path.read_text())["d"]
        elif path.name in ("secret_key", "token"):
            found[name] = path.read_text().strip()
        elif path.suffix == ".pem":
            found[name] = path.read_text().splitlines()[1]
        elif path.name == "redis.conf":
            password = re.search(r"requirepass (\S+)", path.read_text())
            found[name] = password[1].strip('"') if password else ""
    return {name: value for name, value in found.items() if value}


def readable(process: psutil.Process, what: str) -> str:
    try:
        return Path(f"/proc/{process.pid}/{what}").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def test_no_secret_is_in_an_argument_list_a_workers_environment_or_a_log(
    training_site: Installation,
) -> None:
    site = training_site
    secrets = secrets_of(site)
    kinds = {Path(name).name for name in secrets}
    assert kinds >= {"organiser", "secret_key", "site.jwk", "device.jwk", "token"}, kinds
    # The test before may have stopped and started the site.
    wait_for("coordinator and two trainers", lambda: len(site.processes(RUN)) >= 3, 120)
    processes, workers = site.processes(), site.processes(RUN)
    texts = {f"argv of {p.pid}": readable(p, "cmdline") for p in processes}
    texts |= {f"environment of {p.pid}": readable(p, "environ") for p in workers}
    texts["output"] = site.log()
    texts |= {str(p): p.read_text(errors="replace") for p in site.data.rglob("*.log*")}
    leaks = [
        (secret, place)
        for secret, value in secrets.items()
        for place, text in texts.items()
        if value in text
    ]
    assert leaks == []


def test_files_with_secrets_can_be_read_by_nobody_else(training_site: Installation) -> None:
    names = [name for name in secrets_of(training_site) if name != "organiser"]
    names += ["organiser.json", *(
        str(p.relative_to(training_site.data)) for p in training_site.data.rglob("swarm.key")
    )]  # fmt: skip
    open_to_others = [n for n in names if (training_site.data / n).stat().st_mode & 0o077]
    assert open_to_others == []


def test_a_run_goes_back_to_a_saved_state_and_its_trainers_follow(
    training_site: Installation,
) -> None:
    site = training_site

    def kept() -> list[dict[str, Any]]:
        return list(site.get(f"/api/v1/runs/{RUN}/checkpoints/")["items"])

    wait_for("a saved state", kept, 120)
    saved = max(row["epoch"] for row in kept())  # an older one may be cleared away meanwhile
    wait_for("training past it", lambda: site.state()["epoch"] > saved, 180)
    ((device, public_id),) = site.rows(
        "select id, public_id from accounts_device where name = 'trainer-2'"
    )
    counted = ENTRIES.format("null") + " and epoch >= ?"
    wait_for("its counted work after that", lambda: site.rows(counted, device, saved), 120)
    with Person(site, **site.organiser()) as organiser:
        organiser.log_in()
        form = {"target": f"device:{public_id}", "from_epoch": str(saved)}
        asked = organiser.http.get(UNDO, params=form)
        assert f"<strong>epoch {saved}</strong>" in asked.text
        state = re.search(r'name="state" value="([^"]+)"', asked.text)
        assert state
        began = time.monotonic()
        answer = organiser.post(
            UNDO,
            page=str(asked.url),
            **form,
            action="none",
            rewind="on",
            state=state[1],
            reason="a broken memory module",
            is_meant="on",
        )
        page = str(answer.url)
        assert re.search(r"/undo/[0-9a-f]{12}/$", page), answer.text
        assert "Under way" in answer.text
        wait_for("the whole way", lambda: "Done" in organiser.http.get(page + "now/").text, 240)
    seconds = time.monotonic() - began
    config = site.get(f"/api/v1/runs/{RUN}/config/")["config"]
    assert (config["lineage"], config["start"]["epoch"]) == (2, saved)
    (first,) = site.rows("select min(epoch) from monitoring_epochrecord where lineage = 2")
    assert first[0] in (saved, saved + 1), "it goes on where the state was saved"
    folder = site.data / "workers" / RUN / "coordinator"
    assert f"begins with epoch {saved}" in (folder / "output.log").read_text()
    taken = sum(n for (n,) in site.rows(ENTRIES.format("not null"), device))
    assert taken < 0
    assert -taken <= sum(n for (n,) in site.rows(counted, device, saved))
    assert site.state()["num_peers"] >= 1
    print(f"rolled back to epoch {saved} and on in {seconds:.0f} s")  # noqa: T201
