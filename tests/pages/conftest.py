"""Pages are rendered with templates in which an unknown variable is an error."""

import copy

import pytest
from pytest_django import Settings


class UnknownVariable(str):
    """Raises where Django would print nothing."""

    def __contains__(self, text: object) -> bool:
        return text == "%s"

    def __mod__(self, variable: object) -> str:
        raise AssertionError(f"the template uses an unknown variable: {variable}")


@pytest.fixture(autouse=True)
def _strict_templates(settings: Settings) -> None:
    templates = copy.deepcopy(settings.TEMPLATES)
    templates[0]["OPTIONS"]["string_if_invalid"] = UnknownVariable("unknown")
    settings.TEMPLATES = templates
