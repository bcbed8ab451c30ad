"""Samples: ``[CLS] A [SEP] B [SEP]``, half of them swapped, some tokens hidden."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from training.tasks.albert.corpus import Corpus, pairs_draw
from training.tasks.albert.tokenizer import CLS_ID, MASK_ID, PAD_ID, SEP_ID, SPECIAL_TOKENS
from training.tasks.task import Batch

NUM_SPECIAL = 3
"""Special tokens in each sample."""
IGNORED = -100
"""Label of a token that need not be guessed."""
_HIDE, _REPLACE = 0.8, 0.1
"""Of the tokens to guess: shares shown as [MASK] and as a random token; the rest as they are."""

Ids = NDArray[np.int64]


def batches_draw(
    corpus: Corpus,
    *,
    sequence_length: int,
    mlm_probability: float,
    vocab_size: int,
    sentence_order: bool,
    seed: int,
    micro_batch: int,
) -> Iterator[Batch]:
    """Yield batches for ever; each pass over the corpus has its own pairs and order.

    Without ``sentence_order`` nothing is swapped and nothing is asked about the order.
    """
    rng = np.random.default_rng(seed)
    rows: list[tuple[int, int, int]] = []
    while True:
        pairs = pairs_draw(corpus, sequence_length - NUM_SPECIAL, rng)
        for at in rng.permutation(len(pairs)):
            rows.append((pairs.start[at], pairs.middle[at], pairs.end[at]))
            if len(rows) == micro_batch:
                swapped = (rng.random(micro_batch) < 0.5) & sentence_order
                ids, segments = assemble(corpus.tokens, rows, swapped, sequence_length)
                shown, labels = mask(ids, mlm_probability, vocab_size, rng)
                arrays = {
                    "input_ids": shown,
                    "token_type_ids": segments,
                    "attention_mask": (ids != PAD_ID).astype(np.int64),
                    "labels": labels,
                }
                if sentence_order:
                    arrays["sentence_order_label"] = swapped.astype(np.int64)
                yield {name: torch.from_numpy(array) for name, array in arrays.items()}
                rows = []


def assemble(
    tokens: NDArray[np.int32],
    rows: list[tuple[int, int, int]],
    swapped: NDArray[np.bool_],
    sequence_length: int,
) -> tuple[Ids, Ids]:
    """Return token ids and segment numbers (0 for A, 1 for B) of some samples."""
    ids = np.full((len(rows), sequence_length), PAD_ID, dtype=np.int64)
    segments = np.zeros_like(ids)
    for row, (start, middle, end) in enumerate(rows):
        first, second = tokens[start:middle], tokens[middle:end]
        if swapped[row]:
            first, second = second, first
        split, stop = len(first) + 2, end - start + NUM_SPECIAL
        ids[row, 0], ids[row, split - 1], ids[row, stop - 1] = CLS_ID, SEP_ID, SEP_ID
        ids[row, 1 : split - 1], ids[row, split : stop - 1] = first, second
        segments[row, split:stop] = 1
    return ids, segments


def mask(
    ids: Ids, probability: float, vocab_size: int, rng: np.random.Generator
) -> tuple[Ids, Ids]:
    """Return what the model is shown, and labels: the hidden tokens, elsewhere ``IGNORED``.

    Of each sample's ordinary tokens the share ``probability`` is chosen, at least one; of these
    80 % are shown as [MASK], 10 % as a random token, 10 % unchanged.
    """
    ordinary = ids >= len(SPECIAL_TOKENS)
    wanted = np.maximum(1, np.rint(probability * ordinary.sum(axis=1)).astype(np.int64))
    scores = np.where(ordinary, rng.random(ids.shape), 2.0)
    limit = np.take_along_axis(np.sort(scores, axis=1), wanted[:, None] - 1, axis=1)
    chosen = ordinary & (scores <= limit)
    fate = rng.random(ids.shape)
    random_ids = rng.integers(len(SPECIAL_TOKENS), vocab_size, ids.shape)
    shown = np.where(chosen & (fate < _HIDE), MASK_ID, ids)
    shown = np.where(chosen & (fate >= 1 - _REPLACE), random_ids, shown)
    return shown, np.where(chosen, ids, IGNORED)
