#!/usr/bin/env python3
"""Write docs/reference/errors.md and api.md from the code (``make docs``)."""

import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

from training.protocol.errors import ErrorCode  # noqa: E402

ERRORS_HEAD = """# Error codes

Every error of the API is an RFC 9457 problem document (`application/problem+json`) with the
members `type`, `title`, `status`, `detail`, and two of ours: `code`, which never changes, and
`remedy`, what to do. `beeyard` prints the same sentences and ends with the exit code of
[commands](commands.md#exit-codes). Made by `scripts/reference_write.py`.

| code | status | title | remedy |
|---|---|---|---|
"""

API_HEAD = """# HTTP API

Under `/api/v1/`. `GET /api/v1/openapi.json` is the OpenAPI document, `GET /api/v1/docs` shows it.
Send `Authorization: Bearer <token>`, or use the browser's session. Lists take `?cursor=&limit=` and
answer `{"items": […], "next": cursor or null}`. Instants are RFC 3339 in UTC.
Errors: [codes](errors.md). Made by `scripts/reference_write.py`.

| call | what |
|---|---|
"""


def errors_page() -> str:
    rows = []
    for code in ErrorCode:
        remedy = code.info.remedy.replace("|", "\\|")
        rows.append(f"| `{code}` | {code.info.status} | {code.info.title} | {remedy} |")
    return ERRORS_HEAD + "\n".join(rows) + "\n"


def api_page(schema: dict[str, Any]) -> str:
    rows = []
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            text = operation.get("description") or operation.get("summary") or ""
            first = " ".join(text.strip().split("\n\n")[0].split()).replace("|", "\\|")
            rows.append(f"| `{method.upper()} {path}` | {first} |")
    return API_HEAD + "\n".join(rows) + "\n"


def main() -> None:
    import django

    django.setup()
    from web.api.urls import api

    reference = ROOT / "docs" / "reference"
    (reference / "errors.md").write_text(errors_page())
    (reference / "api.md").write_text(api_page(api.get_openapi_schema()))


if __name__ == "__main__":
    main()
