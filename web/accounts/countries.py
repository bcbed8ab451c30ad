"""Countries that a person may name as theirs: ISO 3166-1 codes with English names."""

from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

_LIST = Path(__file__).with_name("countries.txt")


@lru_cache(maxsize=1)
def countries() -> MappingProxyType[str, str]:
    """Return names by code, in the order of the names."""
    rows = (line.split("\t") for line in _LIST.read_text(encoding="utf-8").splitlines())
    return MappingProxyType(dict(sorted(rows, key=lambda row: row[1])))


def country_name(code: str) -> str:
    """Return a country's name; the code itself when it is not known."""
    return countries().get(code, code)
