"""What an evaluation's process said. Pure: its output in, figures or a reason out."""

import json
import math
from dataclasses import dataclass, field
from typing import Any

MAX_METRICS = 32
MAX_EXAMPLES = 8
MAX_GUESSES = 64
MAX_TEXT = 600
MAX_WORD = 60
_MAX_REASON = 500


@dataclass(frozen=True)
class Outcome:
    """Either figures, or the reason why there are none."""

    metrics: dict[str, float] = field(default_factory=dict)
    num_samples: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)
    reason: str = ""


def outcome_read(output: str, errors: str) -> Outcome:
    """Return what ``beeyard evaluate --json`` printed; never raises, everything is bounded."""
    for line in reversed(output.splitlines()):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and isinstance(value.get("error"), dict):
            return Outcome(reason=_problem(value["error"]))
        if isinstance(value, dict) and isinstance(value.get("metrics"), dict):
            return _figures(value)
    last = next((line for line in reversed(errors.splitlines()) if line.strip()), "")
    return Outcome(reason=f"It ended without a result. {last.strip()}".strip()[:_MAX_REASON])


def _figures(value: dict[str, Any]) -> Outcome:
    metrics = dict(list(value["metrics"].items())[:MAX_METRICS])
    if not metrics or not all(_is_number(figure) for figure in metrics.values()):
        return Outcome(reason="Its figures are not finite numbers: the model may be broken.")
    number = value.get("num_samples")
    examples = value.get("examples")
    return Outcome(
        metrics={str(name)[:MAX_WORD]: float(figure) for name, figure in metrics.items()},
        num_samples=number if isinstance(number, int) and 0 <= number < 2**31 else 0,
        examples=[_example(item) for item in examples[:MAX_EXAMPLES] if isinstance(item, dict)]
        if isinstance(examples, list)
        else [],
    )


def _example(item: dict[str, Any]) -> dict[str, Any]:
    guesses = item.get("guesses")
    pairs = guesses[:MAX_GUESSES] if isinstance(guesses, list) else []
    return {
        "text": str(item.get("text", ""))[:MAX_TEXT],
        "guesses": [
            {name: str(pair.get(name, ""))[:MAX_WORD] for name in ("hidden", "guess")}
            for pair in pairs
            if isinstance(pair, dict)
        ],
    }


def _problem(error: dict[str, Any]) -> str:
    detail, remedy = str(error.get("detail", "")).strip(), str(error.get("remedy", "")).strip()
    sentence = f"{detail[:1].upper()}{detail[1:].rstrip('.')}. {remedy}".strip()
    return sentence[:_MAX_REASON]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
