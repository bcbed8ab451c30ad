"""Every act on a run is in that run's audit log: the codes in the code are read, not listed."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from web.core.audit import run_of

WEB = Path(__file__).parents[2] / "web"
CODE = re.compile(r"(?!.*\.(json|log)$)[a-z]+(\.[a-z_]+)+")
SLUG = re.compile(r"^(f['\"]\{)?([a-z_]+\.)*slug\b")
"""How a target begins that begins with a run's slug."""


def calls() -> Iterator[tuple[Path, ast.Module, ast.Call]]:
    for path in sorted(WEB.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "audit_record":
                yield path, tree, node


def targets(tree: ast.Module, target: ast.expr) -> list[str]:
    """Return how a target is written; one that has a name, as the module gives it that name."""
    if not isinstance(target, ast.Name) or target.id == "slug":
        return [ast.unparse(target)]
    return [
        ast.unparse(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and target.id in {getattr(t, "id", "") for t in node.targets}
    ]


def codes(tree: ast.Module, code: ast.expr) -> set[str]:
    """Return what a code may be; of one that has a name, every code in the module."""
    within = code if isinstance(code, ast.Constant) else tree
    texts = (node.value for node in ast.walk(within) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and CODE.fullmatch(text)}


def test_every_act_whose_target_begins_with_a_slug_is_of_that_run() -> None:
    seen, lost = set(), []
    for path, tree, call in calls():
        says_run = any(keyword.arg == "run" for keyword in call.keywords)
        if says_run or not any(SLUG.match(text) for text in targets(tree, call.args[2])):
            continue
        found = codes(tree, call.args[1])
        assert found, f"{path}: no code was found"
        seen |= found
        lost += [f"{path}: {code}" for code in found if run_of(code, "demo/x") != "demo"]
    assert lost == []
    assert {"webhook.tested", "worker.removed", "run.member.added", "peer.paused"} <= seen
    assert len(seen) > 40
