"""A draft as typed: read from forms and files, shown in fields, checked. Pure.

Nothing that was typed is lost: a value that does not fit is kept as text, with its error beside it.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from training.protocol.config import RunConfig
from web.runs.schema_fields import SITE_SETS, ConfigField, Schema

Body = dict[str, Any]
MAX_TEXT = 65_536
"""Characters of a draft as JSON."""
_MAX_DEPTH = 12
_INTEGER = re.compile(r"-?(\d{1,18}|\d{1,3}(,\d{3}){1,5})")
_SENTENCES: Final = {
    "missing": "This is needed.",
    "extra_forbidden": "There is no such field.",
    "int_parsing": "This should be a whole number.",
    "float_parsing": "This should be a number, such as 0.5 or 1e-3.",
    "int_from_float": "This should be a whole number.",
    "model_type": "This should be a group of fields.",
    "dict_type": "This should be an object of names and values.",
}


class DraftError(ValueError):
    """A file or form that cannot become a draft; the text says why, in a sentence."""


def json_read(text: str) -> Any:
    """Return the value of a text of JSON that every database can keep.

    Raises:
        DraftError: it is too long, too deep, or no JSON; or it holds what is no number or letter.
    """
    if len(text) > MAX_TEXT:
        raise DraftError(f"It is longer than {MAX_TEXT:,} characters.")
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise DraftError("It is nested too deeply.") from error
    except DraftError:
        raise
    except ValueError as error:
        raise DraftError(f"It is not JSON: {str(error)[:120]}.") from error
    return value_check(value)


def value_check(value: Any, depth: int = 0) -> Any:
    """Return ``value`` if it can be kept and signed.

    Raises:
        DraftError: it cannot.
    """
    if depth > _MAX_DEPTH:
        raise DraftError("It is nested too deeply.")
    if isinstance(value, str):
        text_check(value)
    elif isinstance(value, int | float) and not abs(value) < 2**63:  # also what is no number
        raise DraftError("It holds a number that is too large.")
    elif isinstance(value, Mapping):
        for name, item in value.items():
            text_check(name)
            value_check(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            value_check(item, depth + 1)
    return value


def text_check(text: str) -> str:
    """Return ``text`` if databases can keep it, else raise DraftError."""
    if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise DraftError("It holds letters that cannot be kept.")
    return text


def body_own(body: Mapping[str, Any]) -> Body:
    """Return what of a config a draft decides."""
    return {name: value for name, value in body.items() if name not in SITE_SETS}


def body_of_form(
    data: Mapping[str, str], fields: Iterable[ConfigField], artifacts: list[dict[str, Any]]
) -> Body:
    """Return the body that a filled form means. An empty field means its default.

    Raises:
        DraftError: it cannot be kept at all.
    """
    body: Body = {}
    for field in fields:
        value = _value_of(field, data.get(field.name, "").strip())
        if value is not None:
            part = body
            for name in field.path[:-1]:
                part = part.setdefault(name, {})
            part[field.path[-1]] = value
    if artifacts:
        body["artifacts"] = artifacts
    return body_check(body)


def body_check(body: Body) -> Body:
    """Return ``body`` if it is not too large and can be kept, else raise DraftError."""
    value_check(body)
    if len(json.dumps(body)) > MAX_TEXT:
        raise DraftError(f"It is longer than {MAX_TEXT:,} characters.")
    return body


def text_at(body: Any, field: ConfigField) -> str:
    """Return a field's value as it stands in its input; empty: its default."""
    value: Any = body
    for name in field.path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if field.kind == "list" and isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, indent=1, ensure_ascii=False)
    return str(value)


def artifacts_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the files that a draft names; what is no such entry is left out."""
    found = body.get("artifacts")
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def body_errors(body: Mapping[str, Any], params_schema: Schema, *, title: str) -> dict[str, str]:
    """Return what does not fit: a sentence for each dotted path."""
    own = {"title": title, **body_own(body), "run": "draft", "version": 1}
    found = _errors(RunConfig, own, "")
    task = body.get("task")
    if isinstance(task, Mapping) and params_schema.get("properties"):
        params = task.get("params", {})
        found |= _errors(_params_model(params_schema), params, "task.params")
    return found


def _errors(model: type[BaseModel], value: Any, prefix: str) -> dict[str, str]:
    try:
        model.model_validate(value)
    except ValidationError as error:
        return {
            ".".join(filter(None, (prefix, *map(str, item["loc"])))): _sentence(item)
            for item in error.errors(include_url=False, include_input=False)[:50]
        }
    return {}


def _sentence(item: Any) -> str:
    text = str(item["msg"]).replace("Input should", "This should")
    return _SENTENCES.get(str(item["type"]), f"{text.rstrip('.')}.")


def _params_model(schema: Schema) -> type[BaseModel]:
    """Return a model for the flat part of a schema; what it cannot say is not checked."""
    needed = schema.get("required", ())
    fields: dict[str, Any] = {}
    for name, spec in schema["properties"].items():
        spec = spec if isinstance(spec, Mapping) else {}
        limits = {
            short: spec[long]
            for short, long in (("gt", "exclusiveMinimum"), ("ge", "minimum"),
                                ("lt", "exclusiveMaximum"), ("le", "maximum"))
            if isinstance(spec.get(long), int | float)
        }  # fmt: skip
        # Names of strangers: an alias, so that none of them means something to pydantic.
        default = Field(default=... if name in needed else None, alias=name, **limits)
        fields[f"field_{len(fields)}"] = (_type_of(spec), default)
    is_closed = schema.get("additionalProperties") is False
    config = ConfigDict(extra="forbid" if is_closed else "ignore", allow_inf_nan=False)
    return create_model("Params", __config__=config, **fields)


def _type_of(spec: Schema) -> Any:
    choices = spec.get("enum")
    if isinstance(choices, list) and choices and all(isinstance(c, str) for c in choices):
        return Literal[tuple(choices)]
    if spec.get("items") == {"type": "string"}:
        return tuple[str, ...]
    return {"integer": int, "number": float, "boolean": bool, "string": str}.get(
        str(spec.get("type")), Any
    )


def _value_of(field: ConfigField, text: str) -> Any:
    text_check(text)
    if not text:
        return None
    if field.kind == "integer" and _INTEGER.fullmatch(text):
        return int(text.replace(",", ""))
    if field.kind == "number":
        return _number(text)
    if field.kind == "boolean" and text in ("true", "false"):
        return text == "true"
    if field.kind == "list":
        return [item for item in re.split(r"[,\s]+", text) if item]
    if field.kind == "json":
        try:
            return json_read(text)
        except DraftError:
            return text
    return text


def _number(text: str) -> Any:
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) and "_" not in text else text


def _refuse(name: str) -> Any:
    raise DraftError(f"It holds {name}, which is no number.")
