"""The tokenizer: a unigram model, trained once per run and shipped by content hash."""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import Unigram
from tokenizers.trainers import UnigramTrainer

from training.tasks.task import TaskError

PAD, UNKNOWN, CLS, SEP, MASK = "<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNKNOWN, CLS, SEP, MASK)
"""Their ids are their places here."""
PAD_ID, UNKNOWN_ID, CLS_ID, SEP_ID, MASK_ID = range(len(SPECIAL_TOKENS))


def tokenizer_train(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Train a unigram tokenizer of at most ``vocab_size`` pieces, special ones included."""
    tokenizer = Tokenizer(Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Digits(individual_digits=True)]
    )
    tokenizer.decoder = decoders.Metaspace()
    trainer = UnigramTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL_TOKENS),
        unk_token=UNKNOWN,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def tokenizer_write(tokenizer: Tokenizer, path: Path) -> None:
    """Write the tokenizer as JSON, the same bytes each time for the same tokenizer."""
    path.write_text(tokenizer.to_str(pretty=False), encoding="utf-8")


def tokenizer_read(path: Path) -> Tokenizer:
    """Return a tokenizer from its file.

    Raises:
        TaskError: not a tokenizer, or one without the special tokens at their places.
    """
    remedy = "The run's organiser must publish a config with a corrected tokenizer."
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise TaskError(f"{path.name} is not a tokenizer ({error})", remedy) from error
    if any(tokenizer.token_to_id(token) != place for place, token in enumerate(SPECIAL_TOKENS)):
        raise TaskError(f"{path.name} lacks the special tokens {SPECIAL_TOKENS}", remedy)
    return tokenizer
