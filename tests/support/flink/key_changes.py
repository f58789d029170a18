"""Changes of keys, each restored by real Flink, which looks up every value, window and timer by its new key.

``python -m tests.support.flink.key_changes`` makes all of them in all releases and forms, and writes ``key_changes.tsv``: by hand, in some
minutes. ``tests/flink/test_change_keys.py`` makes a part of them and compares.
"""

from __future__ import annotations

import copy
import csv
import json
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import statetool
from statetool import flink as types
from tests.support.corpora.archives import unpack
from tests.support.flink import judge, windows
from tests.support.flink.corpus_cases import ARCHIVE, case_folder, expected_of, metadata_of
from tests.support.flink.machine import FlinkMachine

RESULTS: Final = Path(__file__).with_name("key_changes.tsv")
RELEASES: Final = ("1.20.5", "2.3.0")
#: The case of the corpus, the format and backend that are written, and the backend that restores.
FORMS: Final[dict[str, tuple[str, dict[str, Any], str]]] = {
    "rocksdb": ("rocksdb-canonical", {"format": "canonical"}, "rocksdb"),
    "heap": ("hashmap-canonical", {"format": "canonical"}, "hashmap"),
    "native": ("rocksdb-native", {"format": "same"}, "rocksdb"),
    "native-heap": ("hashmap-checkpoint", {"format": "same"}, "hashmap"),
}
_POJO: Final = "corpus.PublicTypes$ShopKey"
_SHOP_KEY: Final = types.pojo(_POJO, {"account": "INT", "active": "BOOLEAN", "zone": "STRING"})
HASHES: Final = {_POJO: "Objects.hash(zone, account, active)"}


@dataclass(frozen=True)
class KeyChange:
    """Change of the keys of an operator, and the same as a function of keys as in ``expected.json``."""

    new: Callable[[Any], Any]
    sql: str | None = None
    type: Any = None
    #: The type as a job declares it, if it does not follow from the serializer.
    java: str | None = None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _next_key(key: str) -> str:
    return f"w{(int(key[1:]) + 1) % 5}"


_ROTATED: Final = KeyChange(_next_key, "'w' || ((substr(key, 2)::INT + 1) % 5)")
_TO_TEXT: Final = KeyChange(_text, type="STRING")
_TO_LONG: Final = KeyChange(lambda k: k, type="BIGINT")
_TO_PAIR: Final = KeyChange(lambda k: [k, len(k)], "{'f0': key, 'f1': length(key)}", types.tuple_of("STRING", "INT"))
_TO_ROW_DATA: Final = KeyChange(
    lambda k: {"$rowdata": [7, k], "kind": "+I"},
    "{'id': 7, 'name': key}",
    "ROW<id INT, name STRING>",
    "SQL:ROW<id INT, name STRING>",
)
_TO_ROW: Final = KeyChange(
    lambda k: {"$row": [k, 1], "kind": "INSERT"}, "{'f0': key, 'f1': 1::BIGINT}", types.row("STRING", "BIGINT")
)
_TO_POJO: Final = KeyChange(
    lambda k: {"account": len(k), "active": True, "zone": k},
    "{'account': length(key), 'active': true, 'zone': key}",
    _SHOP_KEY,
)
_BACKWARDS: Final = KeyChange(lambda k: k[::-1] + "!", "reverse(key) || '!'")
_NUMBER: Final = KeyChange(lambda k: int(k[1:]), "substr(key, 2)::BIGINT")
_WINDOWS: Final = (
    "win-tumble-reduce", "win-slide-aggregate", "win-session-list", "win-session-reduce", "win-count", "win-evict", "win-proc",
)  # fmt: skip

#: Changes of some operators at once.
CHANGES: Final[dict[str, dict[str, KeyChange]]] = {
    "casts": {
        "scalars-by-long": _TO_TEXT,
        "composites-by-int": _TO_LONG,
        "by-tuple": KeyChange(lambda k: k, type=types.tuple_of("STRING", "BIGINT")),
        "by-byte": KeyChange(lambda k: k, type="INT"),
        "by-short": _TO_TEXT,
        "by-boolean": KeyChange(int, type="INT"),
        "with-ttl": _TO_TEXT,
        "no-uid": _TO_TEXT,
        "uid-hash": _TO_TEXT,
        "keyed-broadcast": _TO_TEXT,
        **dict.fromkeys(_WINDOWS, _ROTATED),
    },
    "expressions": {
        "scalars-by-long": KeyChange(lambda k: 3 - k, "3 - key"),
        "composites-by-int": KeyChange(lambda k: f"n{k}", "'n' || key"),
        "collections-by-string": _TO_PAIR,
        "orders": KeyChange(lambda k: int(k.removeprefix("order-")), "replace(key, 'order-', '')::BIGINT"),
        "by-tuple": KeyChange(lambda k: f"{k[1]}/{k[0]}", "key.f1 || '/' || key.f0"),
        "by-pojo": KeyChange(
            lambda k: [k["zone"], _text(k["active"]), k["account"]],
            "{'f0': key.zone, 'f1': key.active::VARCHAR, 'f2': key.account}",
            types.tuple_of("STRING", "STRING", "INT"),
        ),
        "with-ttl": KeyChange(lambda k: k + 10**12, "key + 1000000000000"),
        "timers": _TO_PAIR,
        "keyed-broadcast": KeyChange(lambda k: -k, "-key"),
        **dict.fromkeys(_WINDOWS, _NUMBER),
    },
    "composites": {
        "collections-by-string": _TO_POJO,
        "orders": _TO_ROW,
        "by-pojo": KeyChange(
            lambda k: {**k, "account": k["account"] + 1},
            "{'account': key.account + 1, 'active': key.active, 'zone': key.zone}",
            _SHOP_KEY,
        ),
        "timers": _TO_POJO,
        "win-tumble-reduce": _TO_PAIR,
        "win-slide-aggregate": _TO_ROW,
        "win-session-list": _TO_POJO,
        "win-session-reduce": _TO_PAIR,
        "win-count": _BACKWARDS,
        "win-evict": _TO_POJO,
        "win-late-list": _TO_PAIR,
        "win-proc": _TO_ROW,
    },
    "rows": {
        "collections-by-string": _TO_ROW_DATA,
        "orders": _TO_ROW_DATA,
        "timers": _TO_ROW_DATA,
        "win-session-list": _TO_ROW_DATA,
        "win-count": _TO_ROW_DATA,
    },
}


def expected_after(expected: Mapping[str, Any], changes: Mapping[str, KeyChange]) -> dict[str, Any]:
    """Return the content of a snapshot after a change of keys, of the changed operators only."""
    after = {}
    for name, change in changes.items():
        if name not in expected:
            continue
        operator = after[name] = copy.deepcopy(expected[name])
        keyed = operator["keyed_state"]
        for state in keyed["states"].values():
            for row in state["rows"]:
                row["key"] = change.new(row["key"])
        for timer in (*keyed["event_time_timers"], *keyed["processing_time_timers"]):
            timer["key"] = change.new(timer["key"])
    return after


def change_keys(case: Path, target: Path, changes: Mapping[str, KeyChange], form: Mapping[str, Any]) -> dict[str, Any]:
    """Change keys in a case of the corpus, and return what the result is expected to hold."""
    expected = expected_of(case)
    uids = {name: expected[name]["operator_id"] for name in changes if name in expected}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the operators whose keys stay
        statetool.migrate(
            str(metadata_of(case)),
            str(target),
            keys={uids[n]: c.sql for n, c in changes.items() if n in uids and c.sql is not None},
            key_types={uids[n]: c.type for n, c in changes.items() if n in uids and c.type is not None},
            hashes=HASHES,
            **form,
        )
    return expected_after(expected, changes)


def wrong_after(
    flink: FlinkMachine, corpus: Path, work: Path, form: str, changes: Mapping[str, KeyChange]
) -> dict[str, list[str]]:
    """Change keys, let Flink restore the result and look up everything by the new keys, and return the differences by operator."""
    case_name, options, backend = FORMS[form]
    if form == "native-heap":  # whose layout cannot be read without the classes of values that Kryo wrote
        changes = {name: change for name, change in changes.items() if name not in ("composites-by-int", "orders")}
    target = work / "changed"
    expected = change_keys(corpus / case_folder(flink.version, case_name), target, changes, options)
    requests = judge.requests_for(target, expected)
    for request in requests:
        request["key"] = changes[request["name"]].java or request["key"]
    answer = _with_row_data(judge.restore(flink, target, requests, backend=backend, savepoint=work / "again"))
    found = [*judge.differences(answer, expected), *judge.read_back(Path(answer["savepoint"]), expected, parallelism=2)]
    continued = {n: e for n, e in expected.items() if changes[n] is _ROTATED}
    if continued:
        found += windows.wrongly_continued(flink, target, continued, backend=backend)
    return {name: [f for f in found if name in f] for name in expected} | {
        "": [f for f in found if not any(n in f for n in expected)]
    }


def _with_row_data(value: Any) -> Any:
    """Return an answer in which the bytes of ``ROW<id INT, name STRING>``, as Flink's ``BinaryRowData`` has them, are its fields."""
    if isinstance(value, list):
        return [_with_row_data(v) for v in value]
    if not isinstance(value, dict):
        return value
    if set(value) != {"$hex"}:
        return {name: _with_row_data(v) for name, v in value.items()}
    raw = bytes.fromhex(value["$hex"])
    if len(raw) < 24 or raw[:8] != bytes(8):
        return value
    number, text = int.from_bytes(raw[8:16], "little"), int.from_bytes(raw[16:24], "little")
    # Up to 7 bytes are stored in place of their position.
    start, size = (16, text >> 56 & 0x7F) if text >> 63 else (text >> 32, text & 0xFFFFFFFF)
    return {"$rowdata": [number, raw[start : start + size].decode()], "kind": "+I"}


def results(flink: FlinkMachine, corpus: Path, work: Path, forms: Collection[str]) -> Iterator[dict[str, str]]:
    """Yield a row per change: release, form, changes, operator, and what is wrong after it."""
    for form in forms:
        for name, changes in CHANGES.items():
            with tempfile.TemporaryDirectory(dir=work) as folder:
                for operator, wrong in wrong_after(flink, corpus, Path(folder), form, changes).items():
                    if operator or wrong:
                        row = {"flink": flink.version, "form": form, "changes": name, "operator": operator}
                        yield {**row, "wrong": json.dumps(wrong[:2]) if wrong else ""}


def main() -> None:
    """Make all changes, and write the results."""
    with tempfile.TemporaryDirectory() as folder, RESULTS.open("w", newline="") as out:
        work = Path(folder)
        corpus = unpack(ARCHIVE, work) / "public"
        writer = csv.DictWriter(
            out, ["flink", "form", "changes", "operator", "wrong"], delimiter="\t", lineterminator="\n"
        )
        writer.writeheader()
        for release in RELEASES:
            flink = FlinkMachine(release, work)
            try:
                for row in results(flink, corpus, work, FORMS):
                    writer.writerow(row)
                    out.flush()
                    if row["wrong"]:
                        print(row)
            finally:
                flink.close()


if __name__ == "__main__":
    main()
