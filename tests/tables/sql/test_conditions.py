from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pytest

from statetool.tables.sql.conditions import allowed_values, arrow_condition, columns_of

KEY = pc.field("key")


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        (KEY == 5, [5]),
        (pc.scalar(5) == KEY, [5]),
        (KEY.isin([1, 2]), [1, 2]),
        (KEY.isin([1, None]), None),
        ((KEY == 5) & (pc.field("a") > 1), [5]),
        ((KEY == 5) & (KEY == 6), []),
        ((KEY == 5) | (KEY == 'x") or (key == "y'), [5, 'x") or (key == "y']),
        (((KEY == 5) & KEY.is_valid()) & ((KEY == 5) & KEY.is_valid()), [5]),
        ((KEY == 5) | (pc.field("a") > 1), None),
        (~(KEY == 5), None),
        (KEY != 5, None),
        (KEY > 5, None),
        (pc.add(KEY, 1) == 5, None),
        (pc.field("a") == 5, None),
        (pc.if_else(pc.is_valid(KEY), KEY.isin([1]), pc.scalar(None)), [1]),
        (KEY.is_null() | (KEY == 1), None),
    ],
)
def test_keys_that_an_arrow_expression_allows(expression: Any, allowed: list[Any] | None) -> None:
    condition = arrow_condition(expression)
    assert condition is not None
    assert allowed_values(condition) == allowed


def test_columns_of_an_arrow_expression() -> None:
    condition = arrow_condition((KEY == 5) & (pc.field("a") > pc.field("b")))
    assert condition is not None
    assert columns_of(condition) == {"key", "a", "b"}
    assert arrow_condition(pc.field("a", "b") == 1) is None  # part of a struct
