"""Parameters of the ``albert`` task, as an organiser writes them into a config."""

from typing import Literal, Self

from pydantic import ConfigDict, Field, PositiveInt, model_validator

from training.protocol.base import FrozenModel

FileName = str


class AlbertParams(FrozenModel):
    """Sizes of the model and where the text comes from; the defaults are ALBERT-base."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    hidden_size: PositiveInt = 768
    """Width of the layers; a multiple of the number of heads. ALBERT-base 768, large 1024."""
    embedding_size: PositiveInt = 128
    """Width of the word vectors. ALBERT takes 128 in all its sizes."""
    layers: PositiveInt = 12
    """How often the text passes a layer. ALBERT-base 12, large 24."""
    groups: PositiveInt = 1
    """Layers share their weights within a group: 1 = all layers are the same."""
    heads: PositiveInt = 12
    """Heads of attention per layer; usually the hidden size divided by 64."""
    intermediate_size: PositiveInt = 3072
    """Width of the feed-forward part; usually four times the hidden size."""
    vocab_size: PositiveInt = 30_000
    """Not less than the tokenizer's number of pieces."""
    sequence_length: int = Field(default=512, ge=16, le=4096)
    """Tokens in one sample. Time and memory grow faster than this number."""
    hidden_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of values that are dropped at random while training."""
    classifier_dropout: float = Field(default=0.1, ge=0, lt=1)
    """The same, before the guess about the order of segments."""

    mlm_probability: float = Field(default=0.15, gt=0, lt=1)
    """Share of a sample's tokens that are hidden and have to be guessed."""
    sop: bool = True
    """Whether the order of the two segments has to be guessed too."""

    source: Literal["python-docs", "text-files"] = "python-docs"
    """Where the text comes from: the documentation inside every Python, or files of the config."""
    files: tuple[FileName, ...] = ()
    """For ``text-files``: names of artifacts of the config, ``.txt`` (documents are separated by
    blank lines) or ``.jsonl`` (a document is a line's ``text``). Artifacts only: a config must
    not name files of a volunteer's machine."""
    held_out: float = Field(default=0.02, ge=0, lt=1)
    """Share of the documents that nobody trains on; evaluations read them. Their text decides."""
    tokenizer: FileName = "tokenizer.json"
    """Name of the artifact with the tokenizer."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.hidden_size % self.heads:
            raise ValueError("hidden_size must be a multiple of heads")
        if self.layers % self.groups:
            raise ValueError("layers must be a multiple of groups")
        if (self.source == "text-files") != bool(self.files):
            raise ValueError("files belong to source text-files, and it needs at least one")
        return self
