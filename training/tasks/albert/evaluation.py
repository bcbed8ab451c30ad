"""ALBERT on held-out text: masked words and the order of two segments."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy

from training.protocol.config import RunConfig
from training.tasks.albert.samples import IGNORED
from training.tasks.albert.text import text_read
from training.tasks.albert.tokenizer import SPECIAL_TOKENS
from training.tasks.evaluation import EVALUATION_SEED, EvaluationResult, Example, Guess
from training.tasks.task import Batch

_AT_ONCE = 32
_EXAMPLES = 3
_EXAMPLE_TOKENS = 40
GAP = "____"


def albert_evaluate(
    model: torch.nn.Module,
    config: RunConfig,
    artifacts: Path,
    *,
    samples: int,
    device: torch.device,
) -> EvaluationResult:
    """Return ``mlm_loss``, ``mlm_accuracy`` and, when the run asks for it, ``sop_accuracy``.

    Loss is the mean over samples of the mean over a sample's hidden tokens, as in training.
    """
    text = text_read(config, artifacts, is_held_out=True)
    batches = text.batches(seed=EVALUATION_SEED, micro_batch=min(_AT_ONCE, samples))
    model.eval()
    sums = dict.fromkeys(("samples", "loss", "hidden", "right", "ordered"), 0.0)
    examples: tuple[Example, ...] = ()
    with torch.inference_mode():
        while sums["samples"] < samples:
            batch = {name: tensor.to(device) for name, tensor in next(batches).items()}
            guesses = _batch_add(model, batch, sums)
            if not examples:
                examples = _examples(text.tokenizer, batch, guesses)
    metrics = {
        "mlm_loss": sums["loss"] / sums["samples"],
        "mlm_accuracy": sums["right"] / sums["hidden"],
    }
    if text.params.sop:
        metrics["sop_accuracy"] = sums["ordered"] / sums["samples"]
    return EvaluationResult(metrics, int(sums["samples"]), examples)


def _batch_add(model: Any, batch: Batch, sums: dict[str, float]) -> torch.Tensor:
    """Add a batch's figures to the sums and return the guessed token of each place."""
    output = model.albert(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        token_type_ids=batch["token_type_ids"],
    )
    labels = batch["labels"]
    hidden = labels != IGNORED
    logits = model.predictions(output.last_hidden_state[hidden]).float()
    losses = cross_entropy(logits, labels[hidden], reduction="none")
    numbers = hidden.sum(dim=1)
    said = logits.argmax(dim=1)
    sums["samples"] += len(labels)
    sums["loss"] += float((losses / numbers.repeat_interleave(numbers)).sum())
    sums["hidden"] += float(numbers.sum())
    sums["right"] += float((said == labels[hidden]).sum())
    if "sentence_order_label" in batch:
        order = model.sop_classifier(output.pooler_output).argmax(dim=1)
        sums["ordered"] += float((order == batch["sentence_order_label"]).sum())
    guesses = torch.full_like(labels, IGNORED)
    guesses[hidden] = said
    return guesses


def _examples(tokenizer: Tokenizer, batch: Batch, guesses: torch.Tensor) -> tuple[Example, ...]:
    columns = (batch["input_ids"], batch["labels"], guesses)
    rows = zip(*(column[:_EXAMPLES, :_EXAMPLE_TOKENS].tolist() for column in columns), strict=True)
    return tuple(_example(tokenizer, *row) for row in rows)


def _example(
    tokenizer: Tokenizer, shown: list[int], labels: list[int], guesses: list[int]
) -> Example:
    words: list[str] = []
    plain: list[int] = []
    found: list[Guess] = []
    for token, label, guess in zip(shown, labels, guesses, strict=True):
        if label == IGNORED:
            if token >= len(SPECIAL_TOKENS):
                plain.append(token)
            continue
        words += [tokenizer.decode(plain), GAP]
        plain = []
        found.append(Guess(_word(tokenizer, label), _word(tokenizer, guess)))
    words.append(tokenizer.decode(plain))
    return Example(" ".join(word for word in words if word), tuple(found))


def _word(tokenizer: Tokenizer, token: int) -> str:
    return tokenizer.decode([token], skip_special_tokens=False).strip() or "·"
