from __future__ import annotations

import json
import subprocess
import sys
from collections import namedtuple
from dataclasses import fields
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statetool.errors import OptionError
from statetool.tables.option_text import by_known_names
from statetool.tables.request import OPTIONS, REQUEST_OPTIONS, ScanOptions, ScanRequest
from statetool.types.options import ReadingOptions, ReadOptions

#: Names possible in Java, except for lone surrogates.
NAMES = st.text(st.characters(codec="utf-8"), min_size=1)
#: All characters, including surrogate pairs as two characters.
STRINGS = st.text() | st.text(st.sampled_from("a\x00\ud83d\ude00\ud800\U0001f600é"))
SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([1 << 63, -(1 << 63), -(1 << 63) - 1, 1 << 14_000]),
    st.floats(),
    st.sampled_from([float("nan"), -0.0, 0.0, 1.0, 1, True, float("inf")]),
    STRINGS,
    st.binary(),
    st.decimals(),
)
KEYS = st.recursive(
    SCALARS, lambda part: st.lists(part, max_size=3) | st.lists(part, max_size=3).map(tuple), max_leaves=6
)
COLUMNS = st.dictionaries(
    NAMES, st.lists(NAMES, max_size=3) | st.sampled_from(["ROW<id BIGINT, `größe` STRING>", "row(a INT)"]), max_size=3
)
WORDS = {name: st.sampled_from(o.words) for name, o in OPTIONS.items() if o.words and name != "ttl"}
TTL = st.one_of(
    st.fixed_dictionaries({}, optional={"ttl": st.sampled_from(["show", "raw"])}),
    st.fixed_dictionaries(
        {"ttl": st.just("hide_expired"), "ttl_ms": st.integers(1, 1 << 62)},
        optional={"now_ms": st.integers(-(1 << 62), 1 << 62)},
    ),
)
SHOWN = st.fixed_dictionaries({}, optional={**WORDS, "columns": COLUMNS})
SIZES = st.fixed_dictionaries({}, optional={n: st.integers(1, 1 << 62) for n in ("split_bytes", "memory_bytes")})
KEYED = {"keys": st.none() | st.lists(KEYS, max_size=4), "key_group": st.booleans()}
TABLES = st.one_of(
    st.fixed_dictionaries(
        {"table": st.sampled_from(["keyed_state", "timers"])},
        optional={"states": st.none() | st.lists(NAMES, max_size=3), **KEYED},
    ),
    st.fixed_dictionaries({"table": NAMES.filter(lambda n: n not in ("keyed_state", "timers"))}, optional=KEYED),
    st.fixed_dictionaries(
        {"table": NAMES.filter(lambda n: n not in ("keyed_state", "timers")), "subtask": st.just(True)}
    ),
)
GIVEN = st.tuples(TABLES, TTL, SHOWN, SIZES).map(lambda parts: {k: v for part in parts for k, v in part.items()})


def exactly(value: Any) -> Any:
    """Return a form that distinguishes values that are equal in Python: types, sign of zero, digits of a decimal."""
    if isinstance(value, (tuple, list)):
        return type(value), [exactly(v) for v in value]
    return type(value), np.float64(value).tobytes() if isinstance(value, float) else repr(value)


@given(GIVEN)
def test_every_request_comes_back_equal_from_its_text(arguments: dict[str, Any]) -> None:
    request = ScanRequest.of(**arguments)
    texts = request.to_options()
    again = ScanRequest.from_options(json.loads(json.dumps(texts)))
    assert again == request
    assert hash(again) == hash(request)
    for name in OPTIONS:
        record, other = (request.options, again.options) if name in ReadingOptions.__annotations__ else (request, again)
        assert exactly(getattr(record, name)) == exactly(getattr(other, name))
    assert again.to_options() == texts


@given(GIVEN, st.randoms())
def test_names_of_options_are_known_in_any_case_and_without_underscores(arguments: dict[str, Any], random: Any) -> None:
    request = ScanRequest.of(**arguments)

    def respelt(name: str) -> str:
        return "".join(random.choice((c.lower(), c.upper())) for c in name.replace("_", random.choice(("", "_"))))

    assert ScanRequest.from_options({respelt(n): text for n, text in request.to_options().items()}) == request


def test_keys_that_python_takes_for_equal_are_different_requests() -> None:
    kinds: list[Any] = [1, 1.0, True, "1", b"1", Decimal(1), Decimal("1.0"), (1,), [1], 0.0, -0.0, None]
    assert len({ScanRequest.of(keys=[key]) for key in kinds}) == len(kinds)
    nan = float("nan")
    assert ScanRequest.of(keys=[nan]) == ScanRequest.of(keys=[float("nan")])


def test_keys_become_plain() -> None:
    row = namedtuple("row", "a b")
    given: list[Any] = [np.int64(7), np.bool_(True), np.str_("x"), row(1, bytearray(b"y")), np.float32(0.5)]
    request = ScanRequest.of(keys=given)
    assert exactly(request.keys) == exactly((7, True, "x", (1, b"y"), 0.5))
    assert ScanRequest.of(keys=np.arange(2)).keys == (0, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nanoz": "error"}, "no option 'nanoz'. did you mean nanos?"),
        ({"state": ["a"]}, "did you mean states"),
        ({"nanos": "round"}, "nanos='round' is not one of companion, always, error, truncate"),
        ({"ttl": "hide_expired"}, "ttl_ms"),
        ({"ttl_ms": 5}, "only ttl='hide_expired' uses"),
        ({"now_ms": 5, "ttl": "raw"}, "only ttl='hide_expired' uses"),
        ({"ttl": "hide_expired", "ttl_ms": 0}, "at least 1"),
        ({"ttl": "hide_expired", "ttl_ms": "5"}, "whole number"),
        ({"split_bytes": 0}, "at least 1"),
        ({"memory_bytes": 1.5}, "whole number"),
        ({"memory_bytes": True}, "whole number"),
        ({"key_group": "yes"}, "neither True nor False"),
        ({"states": "a"}, "not one string"),
        ({"states": 5}, "takes a list of names"),
        ({"states": [5]}, "not a list of names"),
        ({"table": "a", "states": ["b"]}, "states= applies only to keyed_state"),
        ({"table": 5}, "not the name of a table"),
        ({"keys": "abc"}, "takes a list of keys"),
        ({"keys": 5}, "takes a list of keys"),
        ({"keys": [{}]}, "not a plain value"),
        ({"subtask": True}, "only operator state"),
        ({"table": "a", "subtask": True, "keys": []}, "subtask= applies only to operator state"),
        ({"table": "a", "subtask": True, "key_group": True}, "subtask= applies only to operator state"),
        ({"columns": ["key"]}, "not a mapping"),
        ({"columns": {"key": "user"}}, "not a list of names"),
        ({"columns": {"key": 5}}, "not a list of names"),
        ({"columns": (("key", ("a",)), ("key", ("b",)))}, "twice"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_asked_for(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        ScanRequest.of(**arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"nanoz": "error"}, "no option 'nanoz'. did you mean nanos?"),
        ({"key_group": "true", "keyGroup": "true"}, "given twice"),
        ({"split_bytes": "much"}, "not a number"),
        ({"key_group": "maybe"}, "neither true nor false"),
        ({"columns": "["}, "columns is not JSON"),
        ({"columns": "[]"}, "not a JSON object"),
        ({"columns": '{"key": ["a"], "key": ["b"]}'}, "member twice"),
        ({"states": "[5]"}, "not a list of names"),
        ({"keys": "a b"}, "not JSON"),
        ({"keys": '{"tuple": 1}'}, "not a key"),
        ({"keys": '[{"tuple": [], "bytes": ""}]'}, "not a key"),
        ({"keys": "[1.00000000000000000001]"}, "not exactly a number of 8 bytes"),
        ({"keys": '[{"date": true}]'}, "not a key"),
        ({"keys": '[{"bytes": "0"}]'}, "not a key"),
        ({"keys": '[{"decimal": "x"}]'}, "not a key"),
        ({"keys": '[{"float": "00"}]'}, "not a key"),
        ({"keys": '[{"str": "ff"}]'}, "not a key"),
        ({"keys": "[" * 100_000}, "not JSON"),
        ({"table": "a", "stateVarName": "b"}, "different tables: a, b"),
        ({"table": "a", "readRegisteredTimers": "true"}, "different tables"),
        ({"readRegisteredTimers": "perhaps"}, "neither true nor false"),
    ],
)
def test_texts_that_are_none_are_refused(texts: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        ScanRequest.from_options(texts)
    assert message in str(caught.value)


def test_other_names_of_tables_and_short_lists() -> None:
    assert ScanRequest.from_options({"STATEVARNAME": "a"}).table == "a"
    assert ScanRequest.from_options({"readregisteredtimers": "True"}).table == "timers"
    assert ScanRequest.from_options({"readRegisteredTimers": "false"}) == ScanRequest()
    assert ScanRequest.from_options({"states": " a, b ,"}).states == ("a", "b")
    assert ScanRequest.from_options({"keys": '[1, "a", {"tuple": ["b", null]}]'}).keys == (1, "a", ("b", None))


def test_the_time_that_expiry_is_judged_by_is_said_once() -> None:
    request = ScanRequest.of(ttl="hide_expired", ttl_ms=5)
    assert request.options.now_ms is not None
    assert ScanRequest.from_options(request.to_options()).options.now_ms == request.options.now_ms


def test_keyword_arguments_are_the_fields() -> None:
    shown, asked = {f.name for f in fields(ReadOptions)}, {f.name for f in fields(ScanRequest)}
    assert set(ReadingOptions.__annotations__) == shown
    assert set(ScanOptions.__annotations__) == shown | asked - {"table", "options"}
    assert set(OPTIONS) == shown | asked - {"options"}
    assert len(by_known_names(dict.fromkeys(REQUEST_OPTIONS, ""), REQUEST_OPTIONS)) == len(REQUEST_OPTIONS)
    assert all(o.help and (o.kind == "word") == bool(o.words) for o in OPTIONS.values())


def test_a_request_needs_no_heavy_package() -> None:
    code = (
        "import sys; from statetool.tables.request import ScanRequest\n"
        "ScanRequest.from_options(ScanRequest.of(keys=[1]).to_options())\n"
        "print(' '.join(m for m in ('pyspark', 'pyarrow', 'numba', 'numpy', 'pandas') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_integers_of_more_digits_than_python_prints() -> None:
    request = ScanRequest.of(keys=[1 << 20_000])
    assert ScanRequest.from_options(request.to_options()).keys == (1 << 20_000,)
