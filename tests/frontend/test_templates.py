"""Templates and styles obey the content policy: nothing inline, nothing from elsewhere."""

import re
from pathlib import Path

import pytest
from django.template.loader import get_template

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
STYLES = sorted((ROOT / "static" / "css").rglob("*.css"))
SCRIPTS = sorted((ROOT / "static" / "js").rglob("*.js"))
INLINE = (
    re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)", re.IGNORECASE),
    re.compile(r"<style\b", re.IGNORECASE),
    re.compile(r"\sstyle\s*=", re.IGNORECASE),
    re.compile(r"\son[a-z]+\s*=\s*[\"']", re.IGNORECASE),
    re.compile(r"javascript:", re.IGNORECASE),
    re.compile(r"\shx-on\b|hx-vals=[\"']js:", re.IGNORECASE),
    re.compile(r"hx-trigger=\"[^\"]*\[", re.IGNORECASE),  # a filter there is evaluated code
)
OUTSIDE = re.compile(r"(?:src|href|url)\s*[=(]\s*[\"']?(?:https?:)?//", re.IGNORECASE)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_template_has_nothing_inline_and_nothing_from_other_hosts(path: Path) -> None:
    text = path.read_text()
    assert [rule.pattern for rule in INLINE if rule.search(text)] == []
    assert OUTSIDE.search(text) is None


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_template_compiles(path: Path) -> None:
    assert get_template(path.relative_to(ROOT / "templates").as_posix())


@pytest.mark.parametrize("path", [*STYLES, *SCRIPTS], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_styles_and_scripts_load_nothing_from_other_hosts(path: Path) -> None:
    text = path.read_text()
    assert OUTSIDE.search(text) is None
    assert "@import" not in text
    assert "innerHTML" not in text, "build elements instead: names come from strangers"
    assert "eval(" not in text


def test_the_rules_find_what_they_forbid() -> None:
    bad = ("<script>x</script>", "<p style='a'>", '<a onclick="x">', "<a href='javascript:x'>")
    for text in bad:
        assert any(rule.search(text) for rule in INLINE), text
    assert OUTSIDE.search('<img src="https://example.org/x.png">')
