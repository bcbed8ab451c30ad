"""The text of a run: what is trained on, and what is held out for evaluations."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from training.protocol.config import RunConfig
from training.tasks.albert.corpus import Corpus, corpus_build
from training.tasks.albert.params import AlbertParams
from training.tasks.albert.samples import NUM_SPECIAL, batches_draw
from training.tasks.albert.sources import Document, python_docs, text_files
from training.tasks.albert.tokenizer import tokenizer_read
from training.tasks.task import Batch, TaskError, artifact_path, params_read


@dataclass(frozen=True)
class Text:
    """Tokenized documents of a run."""

    params: AlbertParams
    tokenizer: Tokenizer
    corpus: Corpus

    def batches(self, *, seed: int, micro_batch: int) -> Iterator[Batch]:
        """Yield batches for ever, in an order of their own for each ``seed``."""
        return batches_draw(
            self.corpus,
            sequence_length=self.params.sequence_length,
            mlm_probability=self.params.mlm_probability,
            vocab_size=self.tokenizer.get_vocab_size(),
            sentence_order=self.params.sop,
            seed=seed,
            micro_batch=micro_batch,
        )


def text_read(config: RunConfig, artifacts: Path, *, is_held_out: bool) -> Text:
    """Return the part of the run's text that is trained on, or the one that is held out.

    Raises:
        TaskError: files are missing or do not fit, or there is too little text.
    """
    params = params_read(AlbertParams, config)
    tokenizer = tokenizer_read(artifact_path(config, artifacts, params.tokenizer))
    if tokenizer.get_vocab_size() > params.vocab_size:
        raise TaskError(
            f"the tokenizer has {tokenizer.get_vocab_size()} pieces, vocab_size is "
            f"{params.vocab_size}",
            "The run's organiser must publish a config with a larger vocab_size.",
        )
    if params.source == "python-docs":
        documents = python_docs()
    else:
        documents = text_files([artifact_path(config, artifacts, name) for name in params.files])
    train, held_out = documents_split(documents, params.held_out)
    corpus = corpus_build(
        held_out if is_held_out else train,
        tokenizer,
        max_piece=(params.sequence_length - NUM_SPECIAL) // 3,
    )
    if is_held_out and not bool(np.any(np.diff(corpus.documents) >= 2)):
        raise TaskError(
            "no text of this run is held out for evaluations",
            "The run's organiser must publish a config with a larger held_out, or more documents.",
        )
    return Text(params, tokenizer, corpus)


def documents_split(
    documents: Sequence[Document], share: float
) -> tuple[list[Document], list[Document]]:
    """Return the documents to train on and those that are held out.

    A document's own text decides, so all machines agree, also when their texts differ a little.
    A text so small that all of it would be held out is trained on whole.
    """
    limit = share * 2.0**64
    train: list[Document] = []
    held_out: list[Document] = []
    for document in documents:
        digest = hashlib.sha256("\n".join(document).encode()).digest()
        (held_out if int.from_bytes(digest[:8]) < limit else train).append(document)
    return (train, held_out) if train else (list(documents), [])
