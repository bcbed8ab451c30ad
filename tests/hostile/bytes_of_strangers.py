"""Values that somebody who means harm would send."""

from typing import Any

from hypothesis import strategies as st

DEEP = b"[" * 200_000
NUMBERS: list[Any] = [
    -1,
    2**31,
    2**53,
    2**63,
    2**64,
    10**400,
    -(2**63) - 1,
    1e308,
    -1e308,
    5e-324,
    float("nan"),
    float("inf"),
]
TEXTS = [
    "",
    "\0",
    "\ud800",
    "é" * 300,
    "../../keys",
    "<script>alert(1)</script>",
    "'; --",
    "x" * 9000,
]
json_leaves: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(NUMBERS)
    | st.text(max_size=20)
    | st.sampled_from(TEXTS)
)
json_values: st.SearchStrategy[Any] = st.recursive(
    json_leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
