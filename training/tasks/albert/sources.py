"""Where text comes from: documents, each a list of sentences."""

import ast
import json
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from training.tasks.task import TaskError

Document = list[str]
"""Sentences in their order."""

_SKIPPED_FOLDERS = frozenset(
    {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__", "lib2to3"}
)
_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z\"'(`*>])")
_BLANKS = re.compile(r"\s+")
_RULES = re.compile(r"[-=*~^_#]{4,}")
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def python_docs() -> list[Document]:
    """Return what every Python installation carries: docstrings and the language reference.

    Sources are parsed, never imported: importing the whole standard library runs code.
    A document is a module with its docstrings in order, or one topic of the reference.
    """
    root = Path(sysconfig.get_path("stdlib"))
    documents = [_docstrings(path) for path in sorted(_sources(root))]
    documents += [sentences(topic) for topic in _topics(root / "pydoc_data" / "topics.py")]
    documents = [document for document in documents if document]
    if not documents:
        raise TaskError(
            f"no Python sources under {root}", "Use a Python with its standard library's sources."
        )
    return documents


def text_files(paths: Iterable[Path]) -> list[Document]:
    """Return the documents of ``.txt`` and ``.jsonl`` files.

    Raises:
        TaskError: a file cannot be read as what its name says.
    """
    documents: list[Document] = []
    for path in paths:
        try:
            texts = _jsonl(path) if path.suffix == ".jsonl" else _paragraph_documents(path)
            documents += [document for document in map(sentences, texts) if document]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TaskError(
                f"{path.name} is not usable text ({error})",
                "The run's organiser must publish a config with a corrected file.",
            ) from error
    return documents


def sentences(text: str) -> list[str]:
    """Split a text into sentences; blanks are folded, ruled lines dropped."""
    found = []
    for paragraph in _PARAGRAPH.split(text):
        folded = _BLANKS.sub(" ", _RULES.sub(" ", paragraph)).strip()
        found += [part for part in _SENTENCE.split(folded) if len(part) > 1]
    return found


def _sources(root: Path) -> Iterator[Path]:
    for path in root.iterdir():
        if path.is_dir():
            if path.name not in _SKIPPED_FOLDERS:
                yield from _sources(path)
        elif path.suffix == ".py" and path.name != "topics.py":
            yield path


def _docstrings(path: Path) -> Document:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError, OSError):
            return []
    nodes = (node for node in ast.walk(tree) if isinstance(node, _Documented))
    texts = (ast.get_docstring(node) for node in nodes)
    return [sentence for text in texts if text for sentence in sentences(text)]


def _topics(path: Path) -> list[str]:
    if not path.exists():
        return []
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            return [str(text) for text in ast.literal_eval(node.value).values()]
    return []


def _jsonl(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield str(json.loads(line)["text"])


def _paragraph_documents(path: Path) -> list[str]:
    return _PARAGRAPH.split(path.read_text(encoding="utf-8"))
