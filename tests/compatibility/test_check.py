from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool as st
from statetool import flink as types
from statetool.cli.main import cli
from statetool.compatibility.rules.avro import by_position, canonical, equal, unreadable
from statetool.compatibility.rules.serializers import resolve
from statetool.compatibility.verdicts import Level
from statetool.errors import OptionError
from statetool.io.cursor import Cursor
from statetool.migration.plan import plan_migration
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import ClassDeclaration, TypeContext, class_of_fields
from tests.support.corpora.archives import HERE, unpack
from tests.support.flink import pairs
from tests.support.flink.pair_suites import SUITES
from tests.support.snapshots import build
from tests.support.snapshots import canonical as canonical_state
from tests.support.snapshots.trees import last_snapshot
from tests.support.zoo import ZOO


def written(folder: Path, *operators: tuple[str, Any], parallelism: int = 2, **options: Any) -> st.Savepoint:
    writer = st.SavepointWriter.new()
    for uid, bootstrap in operators:
        writer = writer.with_operator(uid, bootstrap, parallelism=parallelism, **options)
    return writer.write(str(folder), flink_version="2.3")


def counts(**columns: Any) -> Any:
    return st.bootstrap_keyed_state(pa.table({"id": [1, 2], **{n: [1, 2] for n in columns or ["count"]}}), key="id")


def test_a_snapshot_restores_into_its_own_job() -> None:
    check = st.check(ZOO, ZOO)
    assert {o.uid for o in check.operators} == set(st.load(ZOO))
    # Kryo does not store the fields of its class.
    assert check.verdict == "unknown"
    assert [(o.uid, s.name) for o in check.operators for s in o.states if s.verdict != "fully"] == [("orders", "order")]
    assert [w.partition(":")[0] for w in check.warnings] == ["orders.order"]
    assert not check.ok


def _wrong(table: list[pairs.Outcome]) -> list[pairs.Outcome]:
    wrong = [r for r in table if r.verdict == "fully" and r.flink != "same" and not r.warnings]
    wrong += [r for r in table if r.verdict in ("fully", "after_migration") and r.flink == "refused"]
    return wrong + [r for r in table if r.verdict == "after_migration" and r.flink == "other" and not r.warnings]


def _too_strict(table: list[pairs.Outcome]) -> set[tuple[str, str, str]]:
    return {(r.pair, r.written_by, r.release) for r in table if r.verdict == "not" and r.flink in ("same", "kept")}


def _is_right(row: pairs.Outcome) -> bool:
    if row.verdict == "unknown" or (row.verdict == "not") != (row.flink == "refused"):
        return False
    return row.flink not in ("other", "lost") or bool(row.warnings)


def test_what_flink_did_with_each_pair_is_what_is_said() -> None:
    """No pair that Flink rejects, or restores with other values, gets the verdict "fully"; few are unknown."""
    table = pairs.table()
    assert _wrong(table) == []
    assert _too_strict(table) == set()
    # The classes of the other suites decide, and only the jars have them.
    described = [r for r in table if r.verdict and r.suite not in ("changed-classes", "java-serialized", "messages")]
    assert sum(r.verdict == "unknown" for r in described) <= 0.07 * len(described)


def test_with_jars_nearly_all_is_known() -> None:
    by_jars = {s.name for s in SUITES if s.by_jars}
    rows = [replace(r, verdict=r.with_jars, warnings=r.warnings_with_jars) for r in pairs.table()]
    kinds = [r for r in rows if r.suite in by_jars]
    assert [r for r in _wrong(kinds) if r.flink != "kept"] == []
    assert _too_strict(kinds) == set()
    # Constructors that ask the system, and serializers of the job that changed.
    assert sum(r.verdict == "unknown" for r in kinds) <= 0.09 * len(kinds)
    table = [r for r in rows if r.suite not in by_jars]
    assert _wrong(table) == []
    assert _too_strict(table) == set()
    assert sum(r.verdict == "unknown" for r in table) <= 0.007 * len(table)
    assert sum(map(_is_right, table)) >= 0.985 * len(table)


def test_the_documentation_counts_the_kinds() -> None:
    by_jars = {s.name for s in SUITES if s.by_jars}
    rows = [replace(r, verdict=r.with_jars, warnings=r.warnings_with_jars) for r in pairs.table() if r.suite in by_jars]
    unknown = sum(r.verdict == "unknown" for r in rows)
    needless = sum(bool(r.warnings) and r.verdict == "fully" and r.flink == "same" for r in rows)
    page = (HERE.parent / "docs" / "reference" / "checks.md").read_text("utf-8")
    assert f"{len({(r.suite, r.pair) for r in rows})} pairs of classes" in page
    assert f"{len(rows):,} times in all" in page
    assert f"`unknown` in {unknown} of them, warns without need in {needless}, and is right in all others" in page


@pytest.fixture(scope="module")
def snapshots_of_pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(pairs.SNAPSHOTS, tmp_path_factory.mktemp("pairs"))


@pytest.mark.parametrize(("written_by", "release"), [("1.20", "1.20"), ("1.20", "2.3"), ("2.3", "2.3")])
def test_the_table_of_pairs_has_todays_verdicts(
    tmp_path: Path, snapshots_of_pairs: Path, written_by: str, release: str
) -> None:
    checked = {
        (suite.name, name, backend, with_jars): verdict
        for suite in SUITES
        for backend in pairs.backends(suite)
        for with_jars in (False, True)
        for name, verdict in pairs.verdicts(
            suite, snapshots_of_pairs, tmp_path, written_by, release, backend, with_jars=with_jars
        ).items()
    }
    rows = [r for r in pairs.table() if (r.written_by, r.release) == (written_by, release)]
    in_table = {(r.suite, r.pair, r.backend, False): (r.verdict, r.warnings) for r in rows if r.verdict}
    in_table |= {(r.suite, r.pair, r.backend, True): (r.with_jars, r.warnings_with_jars) for r in rows}
    assert checked == in_table, "run python -m tests.support.flink.pairs --verdicts"


def test_serializer_objects_of_flink_1_cannot_be_read_by_flink_2(snapshots_of_pairs: Path) -> None:
    """flink-avro of Flink 1.x registers one for all Kryo states of a job."""
    suite = next(s for s in SUITES if s.name == "kryo-with-avro")
    old = st.load(str(snapshots_of_pairs / "old" / suite.name / "1.20"), uids=suite.states(new=False))
    operators = [o for o in st.check(old, flink_version="2.3").operators if o.uid in suite.states(new=False)]
    assert len(operators) == 2
    for operator in operators:
        assert operator.verdict == "not"
        assert "comes from flink-avro" in operator.states[0].reason
    assert st.check(old, flink_version="1.20").verdict == "fully"


def test_a_uid_that_is_gone_is_suggested(tmp_path: Path) -> None:
    old = written(tmp_path / "old", ("accounts", counts()), ("other", counts(total=1)))
    new = written(tmp_path / "new", ("accounts-2", counts()), ("other", counts(total=1)), ("third", counts(x=1)))
    check = st.check(old, new)
    assert check.verdict == "not"
    by_uid = {o.uid: o for o in check.operators}
    assert by_uid["accounts"].verdict == "not"
    assert "statetool uid A NEW accounts=accounts-2" in by_uid["accounts"].remedy
    assert "bytes of state cannot be restored" in by_uid["accounts"].reason
    assert [w.kind for w in by_uid["accounts"].warnings] == ["loses"]
    assert by_uid["other"].verdict == "fully"
    assert by_uid["third"].reason == "New in the job: it starts empty."


def vehicles(
    folder: Path, classes: dict[str, bytes], *, entries: bool = False, base: dict[str, bytes] | None = None
) -> str:
    """Write a savepoint of POJOs with the fields ``base``; with ``entries`` it holds a value of the class Bike."""
    folder.mkdir()
    value = bytes([4]) + b"\0\4Bike" + bytes([2, 0]) + (2).to_bytes(4, "big") + b"\0" + (7).to_bytes(4, "big")
    group = canonical_state.group_of(canonical_state.serializer(build.STRING), "a", 128)
    subtask = canonical_state.Subtask(
        key=build.STRING,
        states=[
            canonical_state.keyed("v", "value", build.pojo("Vehicle", base or {"wheels": build.INT}, others=classes))
        ],
        entries=[("v", group, b"\2a\0", value)] if entries else [],
    )
    canonical_state.savepoint(folder, [subtask])
    return str(folder)


BIKE: Final = build.pojo("Bike", {"wheels": build.INT, "gear": build.INT})
LONGER_BIKE: Final = build.pojo("Bike", {"wheels": build.INT, "gear": build.INT, "bell": build.STRING})
OLD_BIKE: Final = class_of_fields("Bike", {"wheels": "int", "gear": "int"}, extends=("Vehicle",))
NEW_BIKE: Final = class_of_fields("Bike", {"wheels": "int", "gear": "int", "bell": "String"}, extends=("Vehicle",))


@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize(
    ("old", "new"), [((), ()), ((NEW_BIKE,), (NEW_BIKE,)), ((OLD_BIKE,), (OLD_BIKE,)), ((OLD_BIKE,), (NEW_BIKE,))]
)
def test_a_declared_class_is_not_a_described_one(
    tmp_path: Path, old: tuple[ClassDeclaration, ...], new: tuple[ClassDeclaration, ...], *, described: bool
) -> None:
    """Flink reads values of undescribed classes with the new classes and stops in the middle: declarations do not help it."""
    a = st.load(vehicles(tmp_path / "a", {}, entries=True), declarations=old)
    b = st.load(vehicles(tmp_path / "b", {"Bike": LONGER_BIKE} if described else {}), declarations=new)
    for backend in ("heap", "rocksdb", None):
        check = st.check(a, b, backend=backend)
        assert check.verdict == "unknown"
        assert "Bike, a subclass of Vehicle that the snapshot does not describe" in check.reason
        assert not check.ok
    # A declaration for the new job does not replace the description that Flink needs, either.
    c = st.load(vehicles(tmp_path / "c", {"Bike": BIKE}, entries=True), declarations=old)
    d = st.load(vehicles(tmp_path / "d", {}), declarations=new)
    assert st.check(c, d).verdict == "unknown"
    # A class without values does not matter.
    e = st.load(vehicles(tmp_path / "e", {}), declarations=old)
    assert st.check(e, b).verdict == "fully"


def test_values_that_cannot_be_read_are_not_fine(tmp_path: Path) -> None:
    """The error of a wrong declaration was mistaken for the absence of undescribed classes."""
    folder = vehicles(tmp_path / "a", {"Bike": LONGER_BIKE}, entries=True)
    check = st.check(folder, folder)
    assert check.verdict == "unknown"
    assert "Not all values can be read, so their classes are unknown" in check.reason


def test_an_unregistered_subclass_keeps_its_old_serializer(tmp_path: Path) -> None:
    """Flink restores silently, and never writes the new field: ``constructReconfiguredPojoSerializer``."""
    old = vehicles(tmp_path / "old", {"Bike": BIKE}, entries=True)
    new = vehicles(tmp_path / "new", {"Bike": LONGER_BIKE})
    check = st.check(old, new, backend="rocksdb")
    assert check.verdict == "fully"
    assert not check.ok
    (warning,) = check.warnings
    assert "loses: Bike: The new field bell is never written" in warning
    # The hint works: statetool writes the values in the form of the new class.
    migrated = st.load(str(tmp_path / "migrated")) if st.migrate(old, str(tmp_path / "migrated"), to=new) else None
    assert migrated is not None
    assert st.check(migrated, st.load(new), backend="rocksdb").ok
    # Registered subclasses are checked, and migrated.
    a, b = (
        snapshot_reader().snapshot(Cursor(build.pojo("Vehicle", {"wheels": build.INT}, registered={"Bike": bike})))
        for bike in (BIKE, LONGER_BIKE)
    )
    assert resolve(a, b).level == Level.AFTER_MIGRATION
    assert not resolve(a, b).warnings
    # So are the values of a class that also changes.
    a, b = (
        snapshot_reader().snapshot(Cursor(build.pojo("Vehicle", fields, others={"Bike": bike})))
        for fields, bike in (({"wheels": build.INT}, BIKE), ({"wheels": build.INT, "doors": build.INT}, LONGER_BIKE))
    )
    assert resolve(a, b).level == Level.AFTER_MIGRATION
    assert not resolve(a, b).warnings


def test_flink_keeps_the_old_serializer_whatever_changed_in_an_unregistered_subclass() -> None:
    def level(old: dict[str, bytes], new: dict[str, bytes]) -> tuple[Level, list[str]]:
        sides = (
            build.pojo("Vehicle", {"wheels": build.INT}, others={"Bike": build.pojo("Bike", f)}) for f in (old, new)
        )
        found = resolve(*(snapshot_reader().snapshot(Cursor(side)) for side in sides))
        return found.level, [w.message for w in found.warnings]

    two = {"wheels": build.INT, "gear": build.INT}
    assert level(two, two) == (Level.AS_IS, [])
    assert level(two, {"wheels": build.INT}) == (Level.RECONFIGURED, ["The values of the field gear are dropped."])
    swapped = level(two, {"wheels": build.INT, "bell": build.INT})
    assert swapped[0] == Level.RECONFIGURED
    assert ["gear are dropped" in swapped[1][0], "new field bell is never written" in swapped[1][1]] == [True, True]
    # Fields of a class inside the subclass are kept, and never written, too.
    part, longer = (build.pojo("Part", dict.fromkeys(names, build.INT)) for names in ("a", "ab"))
    inner = level({**two, "part": part}, {**two, "part": longer})
    assert (inner[0], len(inner[1])) == (Level.RECONFIGURED, 1)
    assert "new field part.b is never written" in inner[1][0]
    # Another type of a field cannot be set.
    assert level(two, {"wheels": build.INT, "gear": build.STRING})[0] == Level.INCOMPATIBLE


def test_an_undescribed_subclass_whose_base_class_changed_is_refused(tmp_path: Path) -> None:
    """Flink reads its values with the class of the new job, which has the new field of the base class."""
    a = st.load(vehicles(tmp_path / "a", {}, entries=True))
    wider = {"doors": build.INT, "wheels": build.INT}
    for name, fields, verdict in (("same", {"wheels": build.INT}, "unknown"), ("wider", wider, "not")):
        for declarations in ((), (OLD_BIKE,), (NEW_BIKE,)):
            folder = tmp_path / f"{name}{len(declarations)}{declarations == (NEW_BIKE,)}"
            b = st.load(vehicles(folder, {}, base=fields), declarations=declarations)
            check = st.check(a, b, backend="heap")
            assert check.verdict == verdict
            assert "Bike, a subclass of Vehicle that the snapshot does not describe" in check.reason
            assert ("has the changed fields of Vehicle" in check.reason) == (verdict == "not")


def kryo_serializer(
    type_class: str, kryo: int | None, *registered: str, classes: tuple[ClassDeclaration, ...] = ()
) -> Any:
    """Return the serializer of a class that a release of Kryo writes."""
    entries = build.optional_map(*((n, None, None) for n in (type_class, *registered)))
    header = build.kryo(type_class)
    empty = build.optional_map()
    context = TypeContext(kryo=kryo, classes=classes)  # type: ignore[arg-type]
    return snapshot_reader(context).snapshot(Cursor(header[: -3 * len(empty)] + entries + empty + empty))


#: Types that Kryo 2 wrote, and the level and the warnings with which Kryo 5 reads them.
KRYO_5: Final = (
    ("java.lang.String", Level.AS_IS, False),
    ("java.math.BigDecimal", Level.AS_IS, False),
    ("java.util.Date", Level.AS_IS, False),
    ("[I", Level.AS_IS, False),
    ("[D", Level.AS_IS, True),
    ("java.util.ArrayList", Level.UNKNOWN, True),
    ("java.time.Instant", Level.UNKNOWN, True),
    ("java.util.Optional", Level.INCOMPATIBLE, False),
    ("java.util.UUID", Level.INCOMPATIBLE, False),
    ("java.time.LocalDate", Level.INCOMPATIBLE, False),
    ("java.util.regex.Pattern", Level.UNKNOWN, True),
    ("shop.Money", Level.UNKNOWN, True),
)


@pytest.mark.parametrize(("type_class", "level", "warned"), KRYO_5)
def test_flink_2_reads_what_kryo_2_wrote(type_class: str, level: Level, *, warned: bool) -> None:
    """``KryoSerializerSnapshot`` does not compare releases of Kryo: values are right, wrong or unreadable."""
    found = resolve(kryo_serializer(type_class, 2), kryo_serializer(type_class, 5))
    assert found.level == level
    assert [w.kind for w in found.warnings] == ["may_change"] * warned


def test_an_unknown_kryo_is_unknown() -> None:
    found = resolve(kryo_serializer("java.util.UUID", 2), kryo_serializer("java.util.UUID", None))
    assert (found.level, [w.kind for w in found.warnings]) == (Level.UNKNOWN, ["may_change"])
    # Flink 1.x does not read what Kryo 5 wrote.
    assert resolve(kryo_serializer("shop.A", 5), kryo_serializer("shop.A", 2)).level == Level.INCOMPATIBLE


def test_declared_fields_tell_what_kryo_5_reads() -> None:
    for fields, level, text in (
        ({"cents": "long", "currency": "String"}, Level.UNKNOWN, "reads only some types correctly"),
        (
            {"cents": "double", "tags": "List<String>"},
            Level.UNKNOWN,
            "Other or no values: cents (double), tags (java.util.List",
        ),
        ({"cents": "long", "since": "java.time.LocalDate"}, Level.INCOMPATIBLE, "since (java.time.LocalDate)"),
    ):
        money = class_of_fields("shop.Money", fields)
        found = resolve(kryo_serializer("shop.Money", 2, classes=(money,)), kryo_serializer("shop.Money", 5))
        assert found.level == level
        assert text in found.reason
    # A class that contains itself ends.
    node = class_of_fields("shop.Node", {"next": "shop.Node"})
    assert (
        resolve(kryo_serializer("shop.Node", 2, classes=(node,)), kryo_serializer("shop.Node", 5)).level
        == Level.UNKNOWN
    )


def test_kryo_in_an_unchanged_serializer_is_of_another_release_too() -> None:
    inner = [TypeContext(kryo=k) for k in (2, 5)]
    either = build.either(build.INT, build.kryo("java.util.UUID"))
    old, new = (snapshot_reader(context).snapshot(Cursor(either)) for context in inner)
    assert resolve(old, new).level == Level.INCOMPATIBLE
    assert resolve(old, old).level == Level.AS_IS


def test_a_registration_that_is_gone_is_unknown() -> None:
    """Flink refuses it only if the class cannot be loaded (``hasMissingKeys``)."""
    old = kryo_serializer("java.util.UUID", 2, "shop.Money")
    found = resolve(old, kryo_serializer("java.util.UUID", 2))
    assert found.level == Level.UNKNOWN
    assert (
        "does not register shop.Money with Kryo. Flink refuses this only if its class path lacks the class"
        in found.reason
    )
    assert resolve(kryo_serializer("java.util.UUID", 2), old).level == Level.RECONFIGURED


def test_a_broadcast_state_that_became_a_list_is_lost(tmp_path: Path) -> None:
    """Flink keeps broadcast state in a map of its own, so the new state starts empty."""
    values = pa.table({"value": [1, 2]})
    by_kind = {
        "list": st.bootstrap_list_state("s", values, type="BIGINT"),
        "union": st.bootstrap_union_state("s", values, type="BIGINT"),
        "broadcast": st.bootstrap_broadcast_state(
            "s", pa.table({"key": ["x"], "value": [1]}), key_type="STRING", value_type="BIGINT"
        ),
    }
    folders = {kind: written(tmp_path / kind, ("op", state)) for kind, state in by_kind.items()}
    for old, new, verdict in (
        ("broadcast", "list", "fully"), ("broadcast", "union", "fully"), ("list", "broadcast", "fully"), ("union", "broadcast", "fully"),
        ("list", "union", "not"), ("union", "list", "not"),
    ):  # fmt: skip
        check = st.check(folders[old], folders[new])
        assert check.verdict == verdict
        assert [": loses: " in w for w in check.warnings] == [True] * (verdict == "fully")
        assert not check.ok


def test_keys_of_maps_that_evolve_need_the_backend(tmp_path: Path) -> None:
    """RocksDB refuses keys that would be migrated, the heap backend migrates them."""
    for name, fields in (("old", {"a": build.INT}), ("new", {"a": build.INT, "b": build.INT})):
        (tmp_path / name).mkdir()
        subtask = canonical_state.Subtask(
            key=build.STRING,
            states=[canonical_state.keyed("m", "map", build.map_of(build.pojo("Key", fields), build.INT))],
            entries=[],
        )
        canonical_state.savepoint(tmp_path / name, [subtask])
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    assert {b: st.check(old, new, backend=b).verdict for b in (None, "heap", "rocksdb")} == {
        None: "unknown", "heap": "after_migration", "rocksdb": "not",
    }  # fmt: skip
    (state,) = st.check(old, new).operators[0].states
    assert "statetool check A B --backend rocksdb" in state.remedy


def test_parallelism_and_max_parallelism(tmp_path: Path) -> None:
    old = written(tmp_path / "old", ("a", counts()), max_parallelism=4)
    wide = written(tmp_path / "wide", ("a", counts()), parallelism=8, max_parallelism=128)
    assert st.check(old, wide).verdict == "not"
    other = written(tmp_path / "other", ("a", counts()), max_parallelism=128)
    check = st.check(old, other)
    assert check.verdict == "unknown"
    assert "statetool rescale A NEW --uid a=128" in check.operators[0].remedy
    # 256 is not Flink's default for this parallelism, so the job has set it.
    assert st.check(old, written(tmp_path / "set", ("a", counts()), max_parallelism=256)).verdict == "not"
    assert st.check(old, old).ok


def test_a_renamed_state_loses_its_values(tmp_path: Path) -> None:
    old = written(tmp_path / "old", ("a", counts(count=1)))
    new = written(tmp_path / "new", ("a", counts(total=1)))
    check = st.check(old, new)
    assert check.verdict == "fully"
    assert not check.ok
    assert check.warnings == (
        "a.count: loses: The new job does not register this state: Flink carries it along, and its values are not used."
        " If it was renamed to total, rename it in a copy of the snapshot. Run: statetool state rename A NEW --uid a --state count --to total",
    )
    assert "renamed to total" in check.operators[0].states[0].remedy


def test_a_release_alone(corpus: Path) -> None:
    of_1_20 = st.load(last_snapshot(corpus, "v1_20_5-rocksdb-canonical"))
    check = st.check(of_1_20, flink_version="2.3")
    of_kryo = [s for o in check.operators for s in o.states if s.verdict != "fully"]
    # Kryo 5 fails on a UUID of Kryo 2. What it makes of a class depends on the fields.
    assert {s.name: s.verdict for s in of_kryo}.items() >= {("uuid", "not"), ("money", "unknown")}
    assert all("Kryo" in s.reason for s in of_kryo)
    assert st.check(of_1_20, flink_version="1.20").verdict == "fully"
    of_2_3 = st.check(st.load(ZOO), flink_version="1.20")
    assert of_2_3.verdict == "not"
    assert "does not read metadata of version" in of_2_3.reason


def test_a_database_goes_to_its_own_backend_only(corpus: Path) -> None:
    native = st.load(last_snapshot(corpus, "v2_3_0-rocksdb-native"))
    assert {o.verdict for o in st.check(native, native).operators} == {"fully", "unknown"}
    check = st.check(native, native, backend="heap")
    assert check.verdict == "not"
    assert any("statetool convert" in o.remedy for o in check.operators)
    # A canonical savepoint of the new job may come from any backend.
    canonical = st.load(last_snapshot(corpus, "v2_3_0-hashmap-canonical"))
    of_orders = {
        backend: next(o for o in st.check(native, canonical, backend=backend).operators if o.uid == "orders")
        for backend in (None, "rocksdb")
    }
    assert "does not show its backend" in of_orders[None].reason
    assert "does not show its backend" not in of_orders["rocksdb"].reason


def test_options_are_checked() -> None:
    with pytest.raises(OptionError, match="nothing to check against"):
        st.check(ZOO)
    with pytest.raises(OptionError, match="backend='rocks'"):
        st.check(ZOO, ZOO, backend="rocks")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="not a release"):
        st.check(ZOO, flink_version="3.9")


def test_subclasses_that_the_new_job_has_not_met_are_unknown() -> None:
    fields = {"legs": types.INT, "name": types.STRING}
    dog = types.pojo("Dog", {**fields, "barks": types.BOOLEAN})
    old, new = types.pojo("Pet", fields, subclasses={"Dog": dog}), types.pojo("Pet", fields)
    assert resolve(old, new).level == Level.UNKNOWN
    assert resolve(old, old).level == Level.AS_IS
    assert resolve(new, old).level == Level.AS_IS
    changed = types.pojo("Pet", fields, subclasses={"Dog": types.pojo("Dog", fields)})
    assert resolve(old, changed).level == Level.RECONFIGURED


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [dict(zip(("name", "type", "default"), f, strict=False)) for f in fields],
    }


AVRO: Final = (
    ("int", "long", True),
    ("long", "int", False),
    ("float", "double", True),
    ("string", "bytes", True),
    ("int", ["null", "long"], True),
    (["null", "int"], "int", False),
    (["int", "long"], "long", True),
    (record(("a", "int")), record(("a", "int"), ("b", "int", 0)), True),
    (record(("a", "int")), record(("a", "int"), ("b", "int")), False),
    (record(("a", "int"), ("b", "int")), record(("a", "int")), True),
    (record(("a", "int")), record(("a", "string")), False),
    (record(("a", "int")), record(("a", "int"), name="S"), False),
    (record(("a", ["null", "R"])), record(("a", ["null", "R"])), True),
    ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, True),
    ({"type": "map", "values": "int"}, {"type": "map", "values": "string"}, False),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, {"type": "enum", "name": "E", "symbols": ["A"]}, False),
    (
        {"type": "enum", "name": "E", "symbols": ["A", "B"]},
        {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"},
        True,
    ),
    ({"type": "fixed", "name": "F", "size": 4}, {"type": "fixed", "name": "F", "size": 8}, False),
    (record(("a", "int")), record(("b", "int"), ("a", "int", 1)), False),
    (record(("b", "int"), ("a", "int")), record(("a", "int"), ("b", "int")), True),
    (record(("a", ["null", "int"])), record(("a", "int")), False),
    (
        record(("a", record(("x", "int"), name="I"))),
        record(("a", record(("x", "long"), ("y", "int", 0), name="I"))),
        True,
    ),
    ("int", "int", True),
    ("int", ["string", "double"], True),
    (["int", "string"], ["string", "int", "null"], True),
    (["int", "string"], ["int"], False),
    ("boolean", "int", False),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, {"type": "enum", "name": "E", "symbols": ["B", "A"]}, True),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, {"type": "enum", "name": "F", "symbols": ["A"]}, False),
    ({"type": "array", "items": ["null", "int"]}, {"type": "array", "items": ["null", "long"]}, True),
    ({"type": "long", "logicalType": "timestamp-millis"}, "long", True),
)


@pytest.mark.parametrize(("writer", "reader", "reads"), AVRO)
def test_avro_resolution(writer: Any, reader: Any, reads: bool) -> None:
    assert (unreadable(writer, reader) == "") == reads


def field(name: str, kind: Any = "int", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "shop.R", "fields": [{"name": name, "type": kind, **more}]}


#: Schemas, and whether they are considered equal.
EQUAL: Final = (
    ({**record(("a", "int"), name="shop.R"), "doc": "a pair"}, {**record(("a", "int")), "namespace": "shop"}, True),
    (field("a", doc="a number", aliases=["b"]), field("a"), True),
    ({**field("a"), "aliases": ["S"]}, field("a"), True),
    (field("a", order="ascending"), field("a"), True),
    (field("a", order="ignore"), field("a"), False),
    (field("a", default=1), field("a"), False),
    (field("a", default=1), field("a", default=2), False),
    (field("a"), field("b"), False),
    (field("a", {"type": "int"}), field("a"), True),
    (field("a", {"type": "int", "logicalType": "date"}), field("a"), False),
    (field("a", {"type": "string", "avro.java.string": "String"}), field("a", "string"), False),
    (field("a", ["null", "int"]), field("a", ["int", "null"]), False),
    (field("a", ["null", "R"]), field("a", ["null", "shop.R"]), True),
    (field("a", record(("x", "int"), name="I")), field("a", record(("x", "int"), name="shop.I")), True),
    (field("a", record(("x", "int"), name="I")), field("a", record(("x", "int"), name="other.I")), False),
    (record(("a", "int"), name="shop.R"), record(("a", "int"), name="R"), False),
    (
        {"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "A"},
        {"type": "enum", "name": "E", "symbols": ["A", "B"]},
        True,
    ),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, {"type": "enum", "name": "E", "symbols": ["B", "A"]}, False),
)


@pytest.mark.parametrize(("one", "other", "same"), EQUAL)
def test_equal_avro_schemas(one: Any, other: Any, same: bool) -> None:
    assert equal(canonical(one), canonical(other)) == same


@pytest.mark.full
def test_avro_itself_says_the_same(spark: Any) -> None:
    avro = spark._jvm.org.apache.avro
    for writer, reader, reads in AVRO:
        old, new = (avro.Schema.Parser().parse(json.dumps(s)) for s in (writer, reader))
        answer = avro.SchemaCompatibility.checkReaderWriterCompatibility(new, old).getType().toString()
        assert (answer == "COMPATIBLE") == reads, (writer, reader)
    for one, other, same in EQUAL:
        first, second = (avro.Schema.Parser().parse(json.dumps(s)) for s in (one, other))
        assert first.equals(second) == same, (one, other)


def test_avro_takes_the_fields_of_a_generic_record_by_position(spark: Any) -> None:
    """Flink restores such a record with the writer's schema; the serializer for later writes has the new schema."""
    jvm = spark._jvm
    avro = jvm.org.apache.avro
    schemas = [record(("a", "int"), ("b", "int")), record(("b", "int"), ("a", "int"))]
    before, after = (avro.Schema.Parser().parse(json.dumps(s)) for s in schemas)
    value = avro.generic.GenericData.Record(before)
    value.put("a", 1)
    value.put("b", 2)
    out = jvm.java.io.ByteArrayOutputStream()
    encoder = avro.io.EncoderFactory.get().binaryEncoder(out, None)
    avro.generic.GenericDatumWriter(after).write(value, encoder)
    encoder.flush()
    decoder = avro.io.DecoderFactory.get().binaryDecoder(out.toByteArray(), None)
    decoded = avro.generic.GenericDatumReader(after).read(None, decoder)
    assert (decoded.get("a"), decoded.get("b")) == (2, 1)
    assert [what for what, _ in by_position(*schemas)] == ["moves", "moves"]
    resolution = resolve(types.avro(schemas[0]), types.avro(schemas[1]))
    assert resolution.level == Level.AFTER_MIGRATION
    assert [w.kind for w in resolution.warnings] == ["may_change", "may_change"]


def test_avro_states() -> None:
    old = types.avro(record(("a", "int"), ("b", "int")))
    assert resolve(old, old).level == Level.AS_IS
    mine = types.avro(record(("a", "int"), ("b", "int")), runtime_class="shop.R")
    documented = {**record(("a", "int"), ("b", "int")), "doc": "a pair"}
    assert resolve(old, types.avro(documented)).level == Level.AS_IS
    assert resolve(old, types.avro(record(("a", "long")))).level == Level.UNKNOWN
    longer = resolve(old, types.avro(record(("a", "int"), ("b", "int"), ("c", "int", 0))))
    assert longer.level == Level.INCOMPATIBLE
    assert "nothing is at the position of c" in longer.reason
    for before, after in ((mine, old), (old, mine)):
        other_class = resolve(before, after)
        assert other_class.level == Level.AS_IS
        assert ["On heap" in w.text for w in other_class.warnings] == [True]
    assert resolve(mine, types.avro(record(("a", "int"), ("b", "long")))).level == Level.UNKNOWN
    alias = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "int", "aliases": ["a"]}]}
    renamed = resolve(types.avro(record(("a", "int"))), types.avro(alias))
    assert renamed.level == Level.AFTER_MIGRATION
    assert ["On heap" in w.text for w in renamed.warnings] == [True]
    less = resolve(mine, types.avro(record(("a", "long")), runtime_class="shop.R"))
    assert less.level == Level.AFTER_MIGRATION
    assert [w.text for w in less.warnings] == ["The values of the field b are dropped."]
    assert resolve(old, types.avro(record(("a", "string"), ("b", "int")))).level == Level.INCOMPATIBLE


def test_rows_of_sql_go_by_position_and_type() -> None:
    old = types.sql("ROW<a BIGINT, b STRING>")
    assert resolve(old, types.sql("ROW<x BIGINT, y STRING>")).level == Level.AS_IS
    resolution = resolve(old, types.sql("ROW<a BIGINT, b STRING, c INT>"))
    assert resolution.level == Level.INCOMPATIBLE
    assert "by position and type" in resolution.reason


def test_the_command_says_what_to_do_and_exits_with_1(tmp_path: Path) -> None:
    old = written(tmp_path / "old", ("accounts", counts()))
    new = written(tmp_path / "new", ("accounts-2", counts()))
    fine = CliRunner().invoke(cli, ["check", old.path, old.path])
    assert fine.exit_code == 0
    assert fine.stdout.startswith("The job restores if the 3 assumptions below hold.")
    done = CliRunner().invoke(cli, ["check", old.path, new.path, "--output", "json"])
    assert done.exit_code == 1
    shown = json.loads(done.stdout)
    assert shown["verdict"] == "not"
    assert {"uid", "operator_name", "verdict", "reason", "remedy", "states", "warnings"} == set(shown["operators"][0])
    assert "The job does not restore." in done.stderr
    assert CliRunner().invoke(cli, ["check", old.path]).exit_code == 2
    assert CliRunner().invoke(cli, ["check", old.path, "--flink", "2.3"]).exit_code == 0


def test_a_keyed_state_and_an_operator_state_of_one_name_have_their_own_verdicts(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2], "x": [3, 4]})
    listed = st.bootstrap_list_state("x", pa.table({"value": [7, 8]}), type="BIGINT")

    def write(side: str, kind: str) -> st.Savepoint:
        keyed = st.bootstrap_keyed_state(table, key="id", states={"x": st.value(kind)})
        writer = st.SavepointWriter.new().with_operator("op", keyed, listed, parallelism=1)
        return writer.write(str(tmp_path / side), flink_version="2.3")

    old, new = write("old", "BIGINT"), write("new", "INT")
    (operator,) = st.check(old, new).operators
    assert sorted((s.name, s.verdict) for s in operator.states) == [("x", "fully"), ("x", "not")]
    (before,), (after,) = (s.inventory.operators.values() for s in (old, new))
    place: tuple[str, Literal["keyed"], str] = (before.state.operator_id, "keyed", "x")
    plan = plan_migration(old.inventory, old.inventory, declared={place: after.keyed_states["x"][1]})
    assert [(s.state, s.scope) for s in plan.states] == [("x", "keyed")]
    assert plan.refused == ()
