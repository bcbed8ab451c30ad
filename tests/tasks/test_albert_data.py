"""Text to samples: sources, tokenizer, pairs, masks."""

import json
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from training.tasks.albert.corpus import Corpus, corpus_build, pairs_draw
from training.tasks.albert.samples import IGNORED, assemble, batches_draw, mask
from training.tasks.albert.sources import python_docs, sentences, text_files
from training.tasks.albert.tokenizer import (
    CLS_ID,
    MASK_ID,
    PAD_ID,
    SEP_ID,
    SPECIAL_TOKENS,
    tokenizer_read,
    tokenizer_train,
    tokenizer_write,
)
from training.tasks.task import TaskError

WORDS = ("bees", "carry", "pollen", "from", "flower", "to", "hive", "and", "dance", "home")
TEXTS = [
    " ".join(WORDS[(row * 7 + place * 3) % 10] for place in range(5 + row % 9)) + "."
    for row in range(400)
]
DOCUMENTS = [TEXTS[at : at + 20] for at in range(0, 400, 20)]
TOKENIZER = tokenizer_train(TEXTS, 60)
LENGTH = 32


def corpus() -> Corpus:
    return corpus_build(DOCUMENTS, TOKENIZER, max_piece=9)


def test_the_standard_library_is_read_without_importing_it() -> None:
    modules = set(sys.modules)
    documents = python_docs()
    text = " ".join(sentence for document in documents for sentence in document)
    assert len(documents) > 400
    assert len(text) > 1_500_000
    assert "Return a random floating-point number" in text or "random" in text
    assert "antigravity" not in set(sys.modules) - modules


def test_sentences_end_at_stops_and_blank_lines() -> None:
    text = "Open a file. Returns it.\n  Folded\n  line\n\nNext: Paragraph\n=====\nvalue"
    assert sentences(text) == ["Open a file.", "Returns it.", "Folded line", "Next:", *LAST]


LAST = ["Paragraph value"]


def test_text_files_give_documents(tmp_path: Path) -> None:
    plain, lines = tmp_path / "a.txt", tmp_path / "b.jsonl"
    plain.write_text("One. Two.\n\nOther document.")
    lines.write_text(json.dumps({"text": "Third. Fourth."}) + "\n\n")
    assert text_files([plain, lines]) == [
        ["One.", "Two."],
        ["Other document."],
        ["Third.", "Fourth."],
    ]


@pytest.mark.parametrize("content", ["not json", '{"no": "text"}', "[1]"])
def test_a_broken_file_is_refused_by_its_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(content)
    with pytest.raises(TaskError, match=r"corpus\.jsonl"):
        text_files([path])


def test_a_tokenizer_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer_write(TOKENIZER, path)
    first = path.read_bytes()
    again = tokenizer_read(path)
    tokenizer_write(again, path)
    assert path.read_bytes() == first
    assert again.encode("Bees dance home").ids == TOKENIZER.encode("bees dance home").ids
    assert [again.id_to_token(place) for place in range(5)] == list(SPECIAL_TOKENS)


def test_a_tokenizer_without_special_tokens_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    content = json.loads(TOKENIZER.to_str())
    content["added_tokens"] = []
    content["model"]["vocab"][2:5] = [["x", -1.0], ["y", -1.0], ["z", -1.0]]
    path.write_text(json.dumps(content))
    with pytest.raises(TaskError, match="special tokens"):
        tokenizer_read(path)
    path.write_text("{")
    with pytest.raises(TaskError, match="not a tokenizer"):
        tokenizer_read(path)


def test_pairs_stay_in_a_document_and_lose_no_tokens() -> None:
    text, room = corpus(), LENGTH - 3
    pairs = pairs_draw(text, room, np.random.default_rng(0))
    borders = text.pieces[text.documents]
    for start, middle, end in zip(pairs.start, pairs.middle, pairs.end, strict=True):
        assert start < middle < end <= start + room
        document = np.searchsorted(borders, start, "right")
        assert end <= borders[document]
        assert {start, middle, end} <= set(text.pieces)
    used = (pairs.end - pairs.start).sum()
    assert used > 0.9 * len(text.tokens)
    assert (np.diff(pairs.start) > 0).all()


def test_each_pass_splits_elsewhere() -> None:
    rng = np.random.default_rng(0)
    one, other = (pairs_draw(corpus(), 29, rng) for _ in range(2))
    assert set(one.middle) != set(other.middle)


def test_a_sample_is_cls_a_sep_b_sep() -> None:
    tokens = np.arange(100, 120, dtype=np.int32)
    rows = [(0, 3, 5), (5, 6, 10)]
    ids, segments = assemble(tokens, rows, np.array([False, True]), 12)
    assert ids[0].tolist() == [CLS_ID, 100, 101, 102, SEP_ID, 103, 104, SEP_ID, *[PAD_ID] * 4]
    assert segments[0].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0]
    swapped = [CLS_ID, 106, 107, 108, 109, SEP_ID, 105, SEP_ID, *[PAD_ID] * 4]
    assert ids[1].tolist() == swapped
    assert segments[1].tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0]


def test_masks_hide_15_percent_of_which_80_10_10() -> None:
    rng = np.random.default_rng(1)
    ids = rng.integers(len(SPECIAL_TOKENS), 1000, (400, 64))
    ids[:, 0], ids[:, 40], ids[:, 50], ids[:, 51:] = CLS_ID, SEP_ID, SEP_ID, PAD_ID
    shown, labels = mask(ids, 0.15, 1000, rng)
    chosen = labels != IGNORED
    assert (chosen.sum(axis=1) == round(0.15 * 48)).all()
    assert (labels[chosen] == ids[chosen]).all()
    assert not chosen[ids < len(SPECIAL_TOKENS)].any()
    assert (shown[~chosen] == ids[~chosen]).all()
    masked = (shown[chosen] == MASK_ID).mean()
    unchanged = (shown[chosen] == ids[chosen]).mean()
    assert masked == pytest.approx(0.8, abs=0.03)
    assert unchanged == pytest.approx(0.1, abs=0.03)
    assert shown.min() >= 0
    assert shown.max() < 1000


def test_even_the_shortest_sample_has_a_token_to_guess() -> None:
    ids = np.array([[CLS_ID, 10, SEP_ID, 11, SEP_ID, PAD_ID]])
    _, labels = mask(ids, 0.01, 50, np.random.default_rng(0))
    assert (labels != IGNORED).sum() == 1


def batches(**options: object) -> list[dict[str, torch.Tensor]]:
    values = {"sequence_length": LENGTH, "mlm_probability": 0.15, "vocab_size": 60}
    values |= {"sentence_order": True, "seed": 3, "micro_batch": 16}
    return list(islice(batches_draw(corpus(), **(values | options)), 40))  # type: ignore[arg-type]


def test_half_of_the_pairs_are_swapped_and_labelled_so() -> None:
    labels = torch.cat([batch["sentence_order_label"] for batch in batches()])
    assert 0.4 < labels.float().mean() < 0.6


def test_without_sentence_order_nothing_is_swapped() -> None:
    assert all("sentence_order_label" not in batch for batch in batches(sentence_order=False))


def test_padding_is_not_attended_to() -> None:
    for batch in batches()[:5]:
        present = batch["attention_mask"].bool()
        assert (batch["input_ids"][~present] == PAD_ID).all()
        assert (batch["labels"][~present] == IGNORED).all()
        assert batch["input_ids"].shape == (16, LENGTH)
