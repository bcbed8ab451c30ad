"""Fields of a form, drawn from a JSON schema so that none is forgotten. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from training.protocol.config import RunConfig

Schema = Mapping[str, Any]
SITE_SETS: Final = frozenset(
    {"run", "version", "lineage", "start", "previous_sha256", "protocol_version"}
)
"""Fields of a config that no draft has a say in."""
_APART: Final = frozenset({"artifacts", "task.params"})
"""Shown in a way of their own."""
_SIMPLE: Final = {"integer": "integer", "number": "number", "boolean": "boolean", "string": "text"}
_LIMITS: Final = (
    ("exclusiveMinimum", "more than"),
    ("minimum", "at least"),
    ("exclusiveMaximum", "less than"),
    ("maximum", "at most"),
)
_NO_LIMIT = 1e6
"""Only to keep numbers countable: nobody wants to read of it."""
MAX_FIELDS = 200


@dataclass(frozen=True)
class ConfigField:
    """One value of a config: where it stands, what it means, what it may be."""

    path: tuple[str, ...]
    kind: str
    """integer, number, text, boolean, choice, list (of texts) or json."""
    help: str = ""
    limits: str = ""
    """Such as ``at least 1, at most 5,000``."""
    choices: tuple[str, ...] = ()
    default: Any = None
    is_needed: bool = False
    """It has no default."""

    @property
    def name(self) -> str:
        """Dotted; also the name of the input."""
        return ".".join(self.path)

    @property
    def label(self) -> str:
        text = self.path[-1].replace("_", " ")
        return text[:1].upper() + text[1:]


@cache
def config_fields() -> tuple[ConfigField, ...]:
    """Return every field of a config that a draft decides, but artifacts and parameters."""
    schema = RunConfig.model_json_schema()
    found = _leaves(schema, schema, ())
    return tuple(f for f in found if f.path[0] not in SITE_SETS and f.name not in _APART)


def params_fields(schema: Schema) -> tuple[ConfigField, ...]:
    """Return the fields of a task's parameters; one text of JSON when the schema has none."""
    prefix = ("task", "params")
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not 0 < len(properties) <= MAX_FIELDS:
        return (ConfigField(prefix, "json", "Parameters of the task, as a JSON object."),)
    return tuple(_leaf(schema, name, spec, (*prefix, name)) for name, spec in properties.items())


def _leaves(root: Schema, schema: Schema, path: tuple[str, ...]) -> Iterator[ConfigField]:
    for name, spec in schema["properties"].items():
        target = _resolve(root, spec)
        if "properties" in target:
            yield from _leaves(root, target, (*path, name))
        else:
            yield _leaf(schema, name, spec, (*path, name))


def _resolve(root: Schema, spec: Schema) -> Schema:
    reference = spec.get("$ref")
    return root["$defs"][reference.rsplit("/", 1)[-1]] if reference else spec


def _leaf(parent: Schema, name: str, spec: Any, path: tuple[str, ...]) -> ConfigField:
    spec = spec if isinstance(spec, Mapping) else {}
    one = _not_null(spec)
    return ConfigField(
        path=path,
        kind=_kind(one),
        help=" ".join(str(spec.get("description", "")).replace("``", "").split()),
        limits=_limits(one),
        choices=tuple(str(item) for item in one.get("enum", ())),
        default=spec.get("default"),
        is_needed=name in parent.get("required", ()),
    )


def _not_null(spec: Schema) -> Schema:
    """Return the one way in which a value that may be missing is there."""
    ways = spec.get("anyOf")
    if not isinstance(ways, list):
        return spec
    found = [way for way in ways if isinstance(way, Mapping) and way.get("type") != "null"]
    return found[0] if len(found) == 1 else {}


def _kind(spec: Schema) -> str:
    if isinstance(spec.get("enum"), list):
        return "choice"
    if spec.get("type") == "array" and spec.get("items") == {"type": "string"}:
        return "list"
    return _SIMPLE.get(str(spec.get("type")), "json")


def _limits(spec: Schema) -> str:
    found = [
        f"{words} {spec[name]:,}"
        for name, words in _LIMITS
        if isinstance(spec.get(name), int | float) and spec[name] < _NO_LIMIT
    ]
    return ", ".join(found)
