"""The reference pages name everything that exists; links lead somewhere."""

import re
from pathlib import Path

import pytest

from training.protocol.errors import ErrorCode
from training.protocol.metrics import PeerMetrics, SwarmSnapshot

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def settings_in_code() -> set[str]:
    pattern = re.compile(r"env_(?:text|bool|int|list|secret)\(\s*\"([A-Z_]+)\"")
    found = {
        name for file in (ROOT / "web").rglob("*.py") for name in pattern.findall(file.read_text())
    }
    environ = re.compile(r"os\.environ(?:\.get\(|\[)\"((?:BEEYARD|DATABASE|REDIS|EMAIL)[A-Z_]*)\"")
    for package in ("web", "training"):
        for file in (ROOT / package).rglob("*.py"):
            found |= set(environ.findall(file.read_text()))
    return found


def test_every_setting_is_in_the_reference() -> None:
    page = (REFERENCE / "settings.md").read_text()
    missing = {name for name in settings_in_code() if f"`{name}`" not in page}
    assert not missing


def test_every_error_code_is_in_the_reference_with_its_remedy() -> None:
    page = (REFERENCE / "errors.md").read_text()
    for code in ErrorCode:
        assert f"`{code}`" in page, code
        assert code.info.remedy.replace("|", "\\|") in page, code


@pytest.mark.parametrize("model", [PeerMetrics, SwarmSnapshot])
def test_every_field_of_a_report_is_in_the_reference(model: type[PeerMetrics]) -> None:
    page = (REFERENCE / "protocol.md").read_text()
    missing = {name for name in model.model_fields if f"`{name}`" not in page}
    assert not missing


def test_every_command_is_in_the_reference() -> None:
    from training.cli.arguments import parser_build

    page = (REFERENCE / "commands.md").read_text()
    actions = [a for a in parser_build()._actions if a.choices]
    names = {name for action in actions for name in action.choices or ()}
    assert names
    assert not {name for name in names if f"beeyard {name}" not in page}


@pytest.mark.django_db
def test_every_call_of_the_api_is_in_the_reference() -> None:
    from web.api.urls import api

    page = (REFERENCE / "api.md").read_text()
    schema = api.get_openapi_schema()
    calls = {
        f"{method.upper()} {path}"
        for path, operations in schema["paths"].items()
        for method in operations
    }
    assert calls
    assert not {call for call in calls if f"`{call}`" not in page}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if "://" in target or target.startswith("mailto:"):
            continue
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
