"""The same job in two forms, on two backends or of two releases has no differences: each side learns from the other."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

import statetool as st
from statetool.analysis.comparison import compare as compare_module
from statetool.api.comparison import Comparison
from statetool.errors import DecodeError
from tests.support.checks.corpus_check import find_cases
from tests.support.corpora.archives import HERE, unpack
from tests.support.corpora.kryo_classes import CLASSES
from tests.support.snapshots.trees import last_snapshot

#: Cases whose job ran on other records, or had finished in part.
_OTHER_JOBS: Final = ("unaligned", "unaligned-inline", "finished")
_UNKNOWN: Final = ("differ in their bytes", "cannot be found in the layout of the heap backend")


def compare(first: st.Savepoint, second: st.Savepoint) -> Comparison:
    ids = [{o.operator_id for o in sp.operators.values()} for sp in (first, second)]
    # The runs followed one another, so last access times differ.
    return first.diff(second, operators=sorted(ids[0] & ids[1]), access_times=False)


def check_equal(comparison: Comparison, place: str) -> None:
    one_sided = {s.state for s in comparison.structure if s.what == "state"}
    assert not [s for s in comparison.structure if s.severity == "difference" and s.what != "state"], place
    assert not [s for s in comparison.structure if s.before == s.after and s.before is not None], place
    counts = [c for c in comparison.summary() if c.state not in one_sided]
    assert not [c for c in counts if c.added or c.removed or c.changed], place
    assert all(any(words in reason for words in _UNKNOWN) for reason in comparison.unread), place
    assert sum(c.entries_before for c in counts) > 150, place


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("v2_3_0-rocksdb-canonical", "v2_3_0-hashmap-canonical"),
        ("v2_3_0-changelog-hashmap", "v1_13_6-rocksdb-incremental"),
        ("v1_20_5-hashmap-checkpoint", "v2_3_0-rocksdb-native"),
    ],
)
@pytest.mark.parametrize("classes", ["unknown", "declared", "jar"])
def test_two_forms_have_no_difference(corpus: Path, public_jar: Path, first: str, second: str, classes: str) -> None:
    declarations, jars = CLASSES if classes == "declared" else (), [public_jar] if classes == "jar" else []
    sides = [st.load(last_snapshot(corpus, name), declarations=declarations, jars=jars) for name in (first, second)]
    check_equal(compare(*sides), f"{first} {second}")
    check_equal(compare(*reversed(sides)), f"{second} {first}")


@pytest.mark.full
@pytest.mark.parametrize("with_jar", [False, True])
def test_no_two_forms_of_the_job_differ(corpus: Path, public_jar: Path, with_jar: bool) -> None:
    cases = [c for c in find_cases(corpus, None) if c.folder.name.partition("-")[2] not in _OTHER_JOBS]
    opened = {c.folder.name: st.load(str(c.metadata), jars=[public_jar] if with_jar else []) for c in cases}
    assert len(opened) > 30
    # The jar decodes the classes; which snapshots are compared makes no difference then. Without it, each learns from six others, of its own
    # release and of others, of similar forms and of others. Two that equal a third one need no comparison with each other.
    sides = [*opened.items()]
    for distance in (1,) if with_jar else (1, 4, 16):
        for (first, a), (second, b) in zip(sides, sides[distance:] + sides[:distance], strict=True):
            check_equal(compare(a, b), f"{first} {second}")


def test_what_was_learned_is_a_note(corpus: Path) -> None:
    first, second = (st.load(last_snapshot(corpus, f"v2_3_0-{n}-canonical")) for n in ("rocksdb", "hashmap"))
    notes = [s for s in compare(first, second).structure if s.what == "description of subclasses"]
    assert {(s.state, s.severity) for s in notes} == {("order", "note"), ("pet", "note")}
    assert all(s.before is not None and "Cat" in s.before for s in notes), notes


def test_values_that_one_side_does_not_describe_are_not_compared(corpus: Path) -> None:
    """Kryo 2 and Kryo 5 write a class that is not declared as different bytes."""
    first, second = (st.load(last_snapshot(corpus, f"{v}-rocksdb-canonical")) for v in ("v1_20_5", "v2_3_0"))
    comparison = compare(first, second)
    assert not comparison.equal
    (reason,) = [r for r in comparison.unread if "order" in r]
    assert "Kryo corpus.PublicTypes$Money is unknown" in reason
    assert not [
        r
        for r in pa.Table.from_batches(
            comparison.batches(skip_unread=True), schema=comparison.first(0).schema
        ).to_pylist()
        if r["state"] == "order"
    ]


def test_bytes_that_do_not_fit_what_was_learned_are_not_compared(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The class may have changed: that is no damage."""
    first, second = (st.load(last_snapshot(corpus, f"v2_3_0-{n}-canonical")) for n in ("rocksdb", "hashmap"))

    def fail(*_: object) -> None:
        raise DecodeError("3 bytes trail behind a value")

    comparison = first.diff(second, operators=["orders"])
    monkeypatch.setattr(compare_module, "compare_keyed", fail)
    assert any("only the other snapshot describes" in reason for reason in comparison.unread)
    with pytest.raises(DecodeError, match="3 bytes trail"):
        compare(first, first).summary()


def test_the_key_type_of_the_other_side_is_learned(tmp_path: Path) -> None:
    """A changelog without materialized state does not store the type of its keys: those of Long and Double have the same bytes."""
    unpack(HERE / "corpus" / "jobs.tar.xz", tmp_path)
    case = next(p for p in tmp_path.rglob("v2_3_0-logged-changelog"))
    (metadata,) = case.rglob("_metadata")
    unknown = st.load(str(metadata))
    known = st.load(str(metadata), key_types={"l-double": "DOUBLE", "l-float": "FLOAT", "l-char": st.flink.CHAR})
    assert len(unknown.diff(unknown).unread) == 3
    for comparison in (unknown.diff(known), known.diff(unknown)):
        assert comparison.unread == ()
        assert comparison.to_arrow().num_rows == 0
        assert {s.what for s in comparison.structure} == {"description of keys"}
    # Other operators are compared and measured, whether or not the keys of one are known.
    assert sum(c.entries_before for c in unknown.diff(unknown).summary()) > 0
    assert len(unknown.stats().unread) == 3
