"""Tokenized text in flat arrays, and the pairs of segments that samples are made of."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from training.tasks.albert.sources import Document

_TOKENIZE_AT_ONCE = 4096


@dataclass(frozen=True)
class Corpus:
    """All tokens in one array; pieces (sentences or parts of them) as ranges in it."""

    tokens: NDArray[np.int32]
    pieces: NDArray[np.int64]
    """Start of each piece, and the end of the last."""
    documents: NDArray[np.int64]
    """Index in ``pieces`` of each document's first piece, and the number of pieces."""


@dataclass(frozen=True)
class Pairs:
    """Segments A and B of each sample: tokens ``start:middle`` and ``middle:end``."""

    start: NDArray[np.int64]
    middle: NDArray[np.int64]
    end: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start)


def corpus_build(documents: Iterable[Document], tokenizer: Tokenizer, max_piece: int) -> Corpus:
    """Tokenize documents; sentences of more than ``max_piece`` tokens are cut into pieces.

    With ``max_piece`` at most half of a sample, every sample has room for two pieces, and no
    token is ever thrown away.
    """
    documents = list(documents)
    ids = _tokenize([sentence for document in documents for sentence in document], tokenizer)
    pieces: list[int] = []
    firsts: list[int] = []
    position = at = 0
    for document in documents:
        firsts.append(len(pieces))
        for _ in document:
            length = len(ids[at])
            pieces += range(position, position + length, max_piece)
            position, at = position + length, at + 1
    return Corpus(
        tokens=np.fromiter(chain.from_iterable(ids), dtype=np.int32, count=position),
        pieces=np.array([*pieces, position], dtype=np.int64),
        documents=np.array([*firsts, len(pieces)], dtype=np.int64),
    )


def pairs_draw(corpus: Corpus, max_tokens: int, rng: np.random.Generator) -> Pairs:
    """Go through the corpus once: fill samples with whole pieces, and split each at random.

    A and B always come from one document. Where samples begin and where they are split differs
    from pass to pass.
    """
    start, middle, end = [], [], []
    for first, last in zip(corpus.documents[:-1], corpus.documents[1:], strict=True):
        room = int(max_tokens * rng.uniform(0.3, 1.0))
        at = int(first)
        while at + 1 < last:
            stop = int(np.searchsorted(corpus.pieces, corpus.pieces[at] + room, "right")) - 1
            stop = min(max(stop, at + 1), int(last))
            if stop - at >= 2:
                start.append(corpus.pieces[at])
                middle.append(corpus.pieces[rng.integers(at + 1, stop)])
                end.append(corpus.pieces[stop])
            room, at = max_tokens, stop
    columns = (np.array(column, dtype=np.int64) for column in (start, middle, end))
    return Pairs(*columns)


def _tokenize(sentences: list[str], tokenizer: Tokenizer) -> list[list[int]]:
    ids: list[list[int]] = []
    for at in range(0, len(sentences), _TOKENIZE_AT_ONCE):
        batch = tokenizer.encode_batch(
            sentences[at : at + _TOKENIZE_AT_ONCE], add_special_tokens=False
        )
        ids += [encoding.ids for encoding in batch]
    return ids
