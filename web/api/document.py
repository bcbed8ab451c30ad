"""The OpenAPI document: what ninja writes, and what it does not know of our answers."""

from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from training.protocol.errors import Problem
from web.core.errors import PROBLEM_CONTENT_TYPE


class DocumentedAPI(NinjaAPI):
    """An API whose every call may be refused with a problem document."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        """Return the document, with the refusals that each call shares."""
        schema = super().get_openapi_schema(**options)
        components = schema["components"]
        components.setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
        components["responses"] = {
            "Problem": {
                "description": "A refusal (RFC 9457): `code` is stable, `remedy` says what to do.",
                "content": {
                    PROBLEM_CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}
                },
            }
        }
        problem = {"$ref": "#/components/responses/Problem"}
        for operations in schema["paths"].values():
            for operation in operations.values():
                operation["responses"] |= {"4XX": problem, "503": problem}
        return schema


def answers(*kinds: str, partial: bool = False) -> dict[str, Any]:
    """Return the ``openapi_extra`` of a call that answers something other than JSON.

    ``partial``: it also answers the rest of a file, where a download is taken up again.
    """
    content = {kind: {"schema": {"type": "string"}} for kind in kinds}
    found: dict[Any, Any] = {200: {"description": "OK", "content": content}}
    if partial:
        found[206] = {"description": "The rest of the file", "content": content}
    return {"responses": found}
