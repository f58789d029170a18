"""Given keys are parsed by the type of each operator's keys: what is searched, found and missing, and what is refused."""

from __future__ import annotations

import json
import pickle
import re
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import statetool as st
from statetool.cli.main import cli
from statetool.errors import EncodeError, MissingKeyError, OptionError, UnknownNameError
from statetool.tables.scan import place_keys
from tests.support.zoo import ZOO

MOMENT = datetime(1970, 1, 1, 0, 0, 0, 1_000, tzinfo=timezone.utc)
#: Operators whose keys Python or JSON may take for each other.
OPERATORS: dict[str, pa.Array] = {
    "flags": pa.array([True, False]),
    "longs": pa.array([0, 1, 456]),
    "doubles": pa.array([0.0, 1.0, 456.0, float("nan")]),
    "dates": pa.array([date(1970, 1, 1), date(1970, 1, 2)]),
    "moments": pa.array([MOMENT], pa.timestamp("us", "UTC")),
    "texts": pa.array(["007", "456", "true", " padded ", "1970-01-02", "a b"]),
    "numbers": pa.array([Decimal("1.5"), Decimal("1")], pa.decimal128(5, 2)),
    "pairs": pa.array([{"f0": "a", "f1": 1}, {"f0": "b", "f1": 0}]),
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    writer = st.SavepointWriter.new()
    for uid, keys in OPERATORS.items():
        writer = writer.with_operator(uid, st.bootstrap_keyed_state(pa.table({"key": keys, "n": range(len(keys))})))
    return writer.write(str(tmp_path_factory.mktemp("sp") / "sp"), flink_version="2.3").path


def erased(source: str, tmp_path: Path, keys: list[Any], **options: Any) -> dict[str, list[Any]]:
    """Erase keys, and return those that are gone by operator."""
    st.erase(source, str(tmp_path / "new"), keys, **options)
    return gone(source, str(tmp_path / "new"))


def gone(source: str, target: str) -> dict[str, list[Any]]:
    """Return the keys that a copy does not have, by operator. NaN is text, so that it equals itself."""
    old, new = ({u: keys_of(o) for u, o in st.load(p).operators.items()} for p in (source, target))
    return {uid: found for uid, keys in old.items() if (found := [k for k in keys if k not in new[uid]])}


def keys_of(operator: st.Operator) -> list[Any]:
    keys = operator.to_arrow()["key"].to_pylist()
    plain = [tuple(v for n, v in k.items() if n != "_kind") if isinstance(k, dict) else k for k in keys]
    return sorted(("NaN" if k != k else k for k in plain), key=repr)


def run(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
    return done


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (True, {"flags": [True]}),
        (1, {"longs": [1]}),
        (1.0, {"doubles": [1.0]}),
        (date(1970, 1, 2), {"dates": [date(1970, 1, 2)]}),
        (MOMENT, {"moments": [MOMENT]}),
        ("true", {"texts": ["true"]}),
        (Decimal("1.50"), {"numbers": [Decimal("1.50")]}),
        (("a", 1), {"pairs": [("a", 1)]}),
    ],
)
def test_a_value_is_a_key_of_its_own_type_only(source: str, tmp_path: Path, key: Any, expected: Any) -> None:
    assert erased(source, tmp_path, [key]) == expected


@pytest.mark.parametrize("key", [("a", True), ("a", 1.0), (1, 1), ("a",), ["a", 1, 2], float("inf"), -0.0, 2**63, b"a"])
def test_values_of_another_type_are_no_keys(source: str, tmp_path: Path, key: Any) -> None:
    with pytest.raises((OptionError, UnknownNameError)):
        st.erase(source, str(tmp_path / "new"), [key])
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("uid", "wrong"),
    [("longs", True), ("longs", 1.0), ("doubles", 1), ("dates", 1), ("moments", 1), ("flags", 1), ("numbers", 1)],
)
def test_reads_and_edits_take_exact_values_only(source: str, tmp_path: Path, uid: str, wrong: Any) -> None:
    with pytest.raises(EncodeError, match="but the keys are of type"):
        st.load(source)[uid].to_arrow(keys=[wrong])
    with pytest.raises(EncodeError, match="but the keys are of type"):
        st.set_values(source, str(tmp_path / "new"), uid, wrong, {"n": 1})
    with pytest.raises(EncodeError, match="but the keys are of type"):
        st.load(source)[uid].erase([wrong])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[true]", {"flags": [True]}),
        ("[1]", {"longs": [1]}),
        ("[1.0]", {"doubles": [1.0]}),
        ("007", {"texts": ["007"]}),
        ('["456"]', {"texts": ["456"]}),
        ("[456]", {"longs": [456]}),
        ("456.0", {"doubles": [456.0]}),
        ("0", {"longs": [0]}),
        ('{"date": "1970-01-02"}', {"dates": [date(1970, 1, 2)]}),
        ('{"date": 1}', {"dates": [date(1970, 1, 2)]}),
        ('{"timestamp": "1970-01-01T01:00:00.001+01:00"}', {"moments": [MOMENT]}),
        ('[{"decimal": "1.5"}]', {"numbers": [Decimal("1.50")]}),
        ('[["a", 1]]', {"pairs": [("a", 1)]}),
        ("NaN", {"doubles": ["NaN"]}),
    ],
)
def test_a_text_is_parsed_by_the_type_of_the_keys(source: str, tmp_path: Path, text: str, expected: Any) -> None:
    run("erase", source, str(tmp_path / "new"), "--keys", text)
    assert gone(source, str(tmp_path / "new")) == expected


@pytest.mark.parametrize("text", ["456", "true", '["1970-01-02"]'])
def test_a_key_that_is_found_in_several_types_asks_for_operators(source: str, tmp_path: Path, text: str) -> None:
    for verb in ("erase", "keep"):
        done = run(verb, source, str(tmp_path / "new"), "--keys", text, "--allow-missing", code=2)
        assert "different types" in done.stderr
        assert "--uid" in done.stderr
    assert not (tmp_path / "new").exists()


def test_every_operator_is_searched_for_the_keys_that_fit_it(source: str, tmp_path: Path) -> None:
    keys, report = tmp_path / "keys", tmp_path / "report"
    keys.write_text("007\n456\nunknown\r\na b\n")
    options = ["--uid", "texts", "--uid", "longs", "--keys-from", str(keys), "--report", str(report)]
    done = run("erase", source, str(tmp_path / "new"), *options, "--json", "--allow-missing")
    assert gone(source, str(tmp_path / "new")) == {"longs": [456], "texts": ["007", "456", "a b"]}
    for record in (json.loads(done.stdout), json.loads(report.read_text())):
        by_name = {o["operator"]: o for o in record["operators"]}
        counts = ("searched_keys", "found_keys", "unfit_keys")
        assert [by_name["texts"][c] for c in counts] == [4, 3, 0]
        assert [by_name["longs"][c] for c in counts] == [1, 1, 3]
        assert by_name["longs"]["unfit"] == [{"reason": "not a whole number", "keys": [1, 3, 4]}]
        assert [k["found_in"] for k in record["keys"]] == [["texts"], ["texts", "longs"], [], ["texts"]]
        assert record["missing_keys"] == 1
    assert [k["key"] for k in json.loads(done.stdout)["keys"]] == ["007", "456", "unknown", "a b"]
    assert not any(f'"{key}"' in report.read_text() for key in ("007", "456", "unknown", "a b"))
    (words,) = [line for line in done.stderr.splitlines() if line.startswith("longs")]
    assert "1 key searched, 1 found" in words
    assert "3 not searched" in words


@pytest.mark.parametrize("line", [" padded ", "456 ", "\t456", "456\r", "\u2003a", " ", '"open', "[1", "{}"])
def test_lines_that_could_be_misread_are_refused(source: str, tmp_path: Path, line: str) -> None:
    keys = tmp_path / "keys"
    keys.write_bytes(f"007\n{line}\n\n".encode() + (b"x" if line.endswith("\r") else b""))
    if line == "456\r":
        keys.write_bytes(b"007\n456\r\r\n")
    done = run("erase", source, str(tmp_path / "new"), "--keys-from", str(keys), code=2)
    assert "line 2" in done.stderr
    keys.write_text(f"{json.dumps(' padded ')}\n")
    run("erase", source, str(tmp_path / "new"), "--keys-from", str(keys))
    assert gone(source, str(tmp_path / "new")) == {"texts": [" padded "]}


@pytest.mark.parametrize("keys", [["nokey"], ["timer-3", "nokey"], [("nokey", 1)]])
def test_a_missing_key_is_an_error_unless_allowed(tmp_path: Path, keys: list[Any]) -> None:
    for write in (st.erase, st.keep):
        with pytest.raises(UnknownNameError, match="nokey"):
            write(ZOO, str(tmp_path / "new"), keys)
        with pytest.raises(UnknownNameError, match="nokey"):
            write(ZOO, str(tmp_path / "new"), keys, dry_run=True)
    assert not (tmp_path / "new").exists()
    done = st.erase(ZOO, str(tmp_path / "new"), keys, allow_missing=True)
    assert [bool(k["found_in"]) for k in done.report()["keys"]] == [k == "timer-3" for k in keys]


def test_missing_keys_of_edits_are_errors(tmp_path: Path) -> None:
    operator = st.load(ZOO)["timers"]
    for edit in (operator.erase, operator.keep):
        with pytest.raises(UnknownNameError, match="nokey"):
            edit(["nokey"])
    assert operator.erase(["nokey"], allow_missing=True).preview()
    with pytest.raises(MissingKeyError, match="without any key"):
        operator.keep(["nokey"], allow_missing=True)
    with pytest.raises(MissingKeyError, match="without any key"):
        operator.keep(where="key = 'nokey'")
    assert operator.keep(["nokey"], allow_missing=True, allow_empty=True).preview()


@pytest.mark.parametrize("second", [{"keys": ["timer-4"]}, {"where": "key = 'timer-4'"}])
def test_edits_that_together_empty_an_operator_are_errors(second: dict[str, Any]) -> None:
    operator = st.load(ZOO)["timers"]
    for first in (operator.keep(["timer-3"]), operator.erase(["timer-4"])):
        with pytest.raises(MissingKeyError, match=r"without any key.*timers"):
            first.keep("timers", **second)
        assert first.keep("timers", **second, allow_empty=True).preview()
    assert operator.keep(["timer-3", "timer-4"]).keep("timers", **second).preview()


def test_the_first_line_says_to_how_many_operators_a_condition_was_applied(tmp_path: Path) -> None:
    done = run("erase", ZOO, str(tmp_path / "a"), "--where", "registered = 3", "--allow-missing")
    first, *others = done.stderr.splitlines()
    assert re.fullmatch(
        r"condition applied to 1 operator, not to \d+ whose columns it does not fit: win-count, .*", first
    )
    assert not any("whose columns" in line for line in others)
    done = run("keep", ZOO, str(tmp_path / "b"), "--where", "key = 'timer-3'", "--uid", "timers", "--dry-run")
    assert done.stderr.splitlines()[0] == "condition applied to 1 operator"


def test_an_operator_is_emptied_only_if_allowed(tmp_path: Path) -> None:
    new = str(tmp_path / "new")
    done = run("keep", ZOO, new, "--keys", "nokey", code=1)
    assert "nokey" in done.stderr
    done = run("keep", ZOO, new, "--where", "key = 'nokey'", "--uid", "timers", code=1)
    assert "timers" in done.stderr
    done = run("erase", ZOO, new, "--where", "key = 'nokey'", "--uid", "timers", code=1)
    assert "--allow-missing" in done.stderr
    assert not Path(new).exists()
    run("erase", ZOO, f"{new}1", "--where", "key = 'nokey'", "--uid", "timers", "--allow-missing")
    run("keep", ZOO, new, "--where", "key = 'nokey'", "--uid", "timers", "--allow-empty")
    assert not st.load(new)["timers"].to_arrow().num_rows


def test_set_parses_the_key_by_the_type_of_the_operator(source: str, tmp_path: Path) -> None:
    new = str(tmp_path / "new")
    for uid, key in (("longs", "true"), ("longs", "1.0"), ("longs", "01"), ("dates", "1"), ("doubles", "1")):
        run("set", source, new, "--uid", uid, "--key", key, "--set", "n=9", code=3)
    for i, (uid, key) in enumerate((("longs", "1"), ("texts", "true"), ("texts", "007"), ("dates", "1970-01-02"))):
        run("set", source, f"{new}{i}", "--uid", uid, "--key", key, "--set", "n=9")
        assert 9 in st.load(f"{new}{i}")[uid].to_arrow()["n"].to_pylist()


def test_reads_take_texts_of_every_type(source: str) -> None:
    for uid, text in (
        ("dates", "1970-01-02"),
        ("moments", "1970-01-01T00:00:00.001Z"),
        ("longs", "456"),
        ("texts", "a b"),
    ):
        listed = json.dumps([text]) if " " in text else text
        assert len(json.loads(run("head", source, uid, "--keys", listed, "--json").stdout)) == 1


def test_equal_keys_of_other_scales_are_found_in_tasks(source: str) -> None:
    """A task can run elsewhere, and returns only the keys that equal a given one."""
    operator = st.load(source)["numbers"].inventory
    returned: list[Any] = []

    def in_tasks(function: Any, items: Any) -> list[Any]:
        copied = pickle.loads(pickle.dumps(function))
        returned.extend(pickle.loads(pickle.dumps(copied(pickle.loads(pickle.dumps(item))))) for item in items)
        return returned

    key = operator.keyed.needed_key()
    found = place_keys(operator, key, [Decimal("1.5"), Decimal(9)], exact=True, in_tasks=in_tasks)
    assert found == place_keys(operator, key, [Decimal("1.5"), Decimal(9)], exact=True)
    assert [len(of_task) for of_task in returned if of_task] == [1]


def test_a_search_reads_keys_where_it_counts_them(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("read in threads of this process")

    monkeypatch.setattr("statetool.tables.scan.in_threads", refuse)
    monkeypatch.setattr("statetool.tables.keys.equal_keys.in_threads", refuse)
    assert st.erase(source, "unused", [Decimal("1.5")], dry_run=True).plan.entries
