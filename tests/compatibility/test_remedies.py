"""Remedies of ``check``: each suggested command, run as printed, mends what it is suggested for."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool as st
from statetool import flink
from statetool.api.write.migrate import try_plan
from statetool.cli.main import cli
from statetool.errors import UnsupportedError
from statetool.formats.metadata import parse_metadata, write_metadata
from statetool.reporting.verdicts.check import check_findings
from statetool.reporting.verdicts.commands import CommandLine
from statetool.reporting.verdicts.finding import Finding
from tests.support.corpora.archives import unpack
from tests.support.flink import job_pairs, job_remedies, pairs
from tests.support.flink.pair_suites import SUITES
from tests.support.flink.remedies import ACROSS, ASKED, refused_pairs
from tests.support.snapshots import build
from tests.support.snapshots import canonical as canonical_state
from tools.flink_jars import DEFAULT_VERSIONS

NUMBERS: Final = pa.array([1, 2], pa.int32())
TEXTS: Final = pa.array(["a", "b"])


def keyed(values: Any, kind: Any, *, key: Any = None, name: str = "s") -> Any:
    table = pa.table({"id": pa.array([1, 2]) if key is None else key, name: values})
    return st.bootstrap_keyed_state(table, key="id", states={name: st.value(kind)})


def listed(union: bool) -> Any:
    make = st.bootstrap_union_state if union else st.bootstrap_list_state
    return make("s", pa.table({"value": [1, 2]}), type="BIGINT")


def snapshot(folder: Path, operators: Mapping[str, Any], **options: Any) -> st.Savepoint:
    writer = st.SavepointWriter.new()
    for uid, state in operators.items():
        writer = writer.with_operator(uid, state, parallelism=1, **{"max_parallelism": 128, **options})
    return writer.write(str(folder), flink_version="2.3")


def findings(old: st.Savepoint, new: st.Savepoint, **options: Any) -> list[Finding]:
    """Return the findings as the command line prints them."""
    check = st.check(old, new, **options)
    plan = try_plan(st.plan_migration(old, new), old)
    return list(check_findings(check, CommandLine(a=old.path, b=new.path), plan).findings)


INT: Final = keyed(NUMBERS, "INT")
LONG: Final = keyed(pa.array([1, 2]), "BIGINT")
LARGE: Final = keyed(pa.array([1, 1 << 40]), "BIGINT")
LIST: Final = st.bootstrap_keyed_state(
    pa.table({"id": [1], "s": pa.array([[1]], pa.list_(pa.int32()))}), key="id", states={"s": st.list_of("INT")}
)
#: Operators before and after, options of the new job, and the command that is suggested.
REFUSED: Final = {
    "widened": ({"a": INT}, {"a": LONG}, {}, "migrate"),
    "narrowed": ({"a": LONG}, {"a": INT}, {}, "migrate"),
    "narrowed, with a value that does not fit": ({"a": LARGE}, {"a": INT}, {}, "drop"),
    "value to list": ({"a": INT}, {"a": LIST}, {}, "migrate"),
    "not convertible": ({"a": keyed(TEXTS, "STRING")}, {"a": keyed(pa.array([1.0, 2.0]), "DOUBLE")}, {}, "drop"),
    "another kind": ({"a": listed(union=False)}, {"a": listed(union=True)}, {}, "migrate"),
    "other keys": ({"a": keyed(NUMBERS, "INT", key=TEXTS)}, {"a": INT}, {}, "drop"),
    "operator gone": ({"a": INT, "b": LONG}, {"a": INT}, {}, "drop"),
    "operator renamed": ({"a": INT}, {"b": INT}, {}, "uid"),
    "operator gone, another with other values": ({"a": INT}, {"b": keyed(TEXTS, "STRING")}, {}, "drop"),
    "operator gone, another with other keys": ({"a": INT}, {"b": keyed(NUMBERS, "INT", key=TEXTS)}, {}, "drop"),
    "max parallelism": ({"a": INT}, {"a": INT}, {"max_parallelism": 300}, "rescale"),
    "two operators": ({"a": INT, "b": INT}, {"a": INT, "b": INT}, {"max_parallelism": 300}, "rescale"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_suggested_command_makes_the_job_restore(tmp_path: Path, name: str) -> None:
    before, after, options, verb = REFUSED[name]
    old, new = snapshot(tmp_path / "old", before), snapshot(tmp_path / "new", after, **options)
    assert st.check(old, new).verdict == "not"
    (error,) = (f for f in findings(old, new) if f.severity == "error")
    program, *arguments = shlex.split(error.command)
    assert (program, arguments[0]) == ("statetool", verb)
    mended = tmp_path / "mended"
    done = CliRunner().invoke(cli, [str(mended) if word == "NEW" else word for word in arguments])
    assert done.exit_code == 0, done.output
    assert st.check(str(mended), new).verdict == "fully"


def two_states(first: str, second: str, values: Any, more: Any, *, key: Any = None) -> Any:
    table = pa.table({"id": pa.array([1, 2]) if key is None else key, "s": values, "t": more})
    return st.bootstrap_keyed_state(table, key="id", states={"s": st.value(first), "t": st.value(second)})


NUMBERS_AND_LARGE: Final = two_states("INT", "BIGINT", NUMBERS, pa.array([1, 1 << 40]))
#: Operators before and after with several errors, and the verbs of the commands, in their order.
SEVERAL: Final = {
    "a conversion that another state prevents": (
        {"a": LARGE, "b": INT},
        {"a": INT, "b": LONG},
        ["drop", "migrate"],
    ),
    "a conversion that a state of the operator prevents": (
        {"a": NUMBERS_AND_LARGE},
        {"a": two_states("BIGINT", "INT", pa.array([1, 2]), NUMBERS)},
        ["drop", "migrate"],
    ),
    "keys and values": (
        {"a": two_states("INT", "INT", NUMBERS, NUMBERS, key=TEXTS), "b": INT},
        {"a": two_states("BIGINT", "STRING", pa.array([1, 2]), TEXTS), "b": LONG},
        ["drop", "migrate"],
    ),
    "an operator that is gone, and values": ({"a": INT, "b": keyed(TEXTS, "STRING")}, {"a": LONG}, ["drop", "migrate"]),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_suggested_commands_help_one_after_another(tmp_path: Path, name: str) -> None:
    before, after, verbs = SEVERAL[name]
    old, new = snapshot(tmp_path / "old", before), snapshot(tmp_path / "new", after)
    commands = dict.fromkeys(f.command for f in findings(old, new) if f.command)
    assert [shlex.split(command)[1] for command in commands] == verbs
    path = str(tmp_path / "old")
    for i, command in enumerate(commands):
        mended = str(tmp_path / f"mended-{i}")
        words = [{"NEW": mended, str(tmp_path / "old"): path}.get(word, word) for word in shlex.split(command)[1:]]
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0, done.output
        path = mended
    assert st.check(path, new).verdict == "fully"


def test_which_of_two_operators_it_is_only_the_user_knows(tmp_path: Path) -> None:
    old, new = snapshot(tmp_path / "old", {"a": INT}), snapshot(tmp_path / "new", {"b": INT, "c": INT})
    (error,) = (f for f in findings(old, new) if f.severity == "error")
    assert "If the operator is b or c in the new job, rename it." in error.remedy
    assert error.command == f"statetool uid {old.path} NEW a=NEW_UID"


def test_an_operator_whose_state_is_unknown_is_renamed_and_checked_again(tmp_path: Path) -> None:
    state = canonical_state.keyed("v", "value", build.kryo("shop.Money"))
    subtask = canonical_state.Subtask(key=build.STRING, states=[state], entries=[])
    (tmp_path / "old").mkdir()
    canonical_state.savepoint(tmp_path / "old", [subtask])
    st.change_uids(str(tmp_path / "old"), str(tmp_path / "new"), {"op": "renamed"})
    found = findings(*(st.load(str(tmp_path / n)) for n in ("old", "new")))
    (error,) = (f for f in found if f.severity == "error")
    assert "rename it and check again" in error.remedy
    assert error.command.startswith("statetool uid ")


def unnamed(folder: Path, by_name: Mapping[str, Any]) -> st.Savepoint:
    """Return a snapshot of operators without uids, as SQL has them."""
    snapshot(folder, {f"{folder.name}{name}": state for name, state in by_name.items()})
    file = folder / "_metadata"
    metadata = parse_metadata(file.read_bytes())
    operators = tuple(replace(o, uid="", name=o.uid.removeprefix(folder.name)) for o in metadata.operators)
    file.write_bytes(write_metadata(replace(metadata, operators=operators)))
    return st.load(str(folder))


@pytest.mark.parametrize("names", [("GroupAggregate[3]", "GroupAggregate[17]"), ("", "")])
def test_sums_of_a_sql_operator_with_another_id_are_renamed_not_dropped(tmp_path: Path, names: tuple[str, str]) -> None:
    """The query changed: the operator has another id, and its sums have another type."""
    old, new = (unnamed(tmp_path / str(n), {names[n]: s}) for n, s in enumerate((INT, keyed(TEXTS, "STRING"))))
    (error,) = (f for f in findings(old, new) if f.severity == "error")
    assert error.command.startswith(f"statetool uid {old.path} NEW ")
    assert "--rename FIELD=OLD, --fill FIELD=JSON" in error.remedy
    assert "drop" not in error.remedy
    refused = st.upgrade(old, str(tmp_path / "upgraded"), to=new, dry_run=True).plan.refused
    assert any(f"Run: statetool uid {old.path} NEW " in reason for reason in refused)


def test_a_rename_that_helps_is_not_blamed_for_the_values_of_another_operator(tmp_path: Path) -> None:
    """Renamed, both operators are found, and the values of one turn out to have another type."""
    old = unnamed(tmp_path / "0", {"Rank[3]": INT, "Join[5]": LIST})
    new = unnamed(tmp_path / "1", {"Rank[4]": keyed(TEXTS, "STRING"), "Join[6]": LIST})
    shown = " ".join(CliRunner().invoke(cli, ["check", old.path, new.path]).stdout.split())
    assert "the job still does not restore this" not in shown
    assert "In a trial, the copy has another error: operator Rank[3]" in shown


def test_another_operator_with_the_same_states_is_not_taken_for_it(tmp_path: Path) -> None:
    old, new = (unnamed(tmp_path / n, {f"{n}[3]": s}) for n, s in (("Rank", INT), ("Join", keyed(TEXTS, "STRING"))))
    (error,) = (f for f in findings(old, new) if f.severity == "error")
    assert error.command.startswith(f"statetool drop {old.path} NEW ")


def test_the_remedy_of_a_state_is_given_once(tmp_path: Path) -> None:
    """Two fields of a row changed: one command converts both."""
    before, after = (
        keyed(pa.array([{"f0": 1, "f1": 2}] * 2, pa.struct({"f0": t, "f1": t})), st.flink.tuple_of(n, n))
        for t, n in ((pa.int32(), "INT"), (pa.int64(), "BIGINT"))
    )
    old, new = snapshot(tmp_path / "old", {"a": before}), snapshot(tmp_path / "new", {"a": after, "b": after})
    found = findings(old, new)
    assert [f.where for f in found] == [("operator a", "state s", "f0"), ("operator a", "state s", "f1")]
    assert [bool(f.remedy) for f in found] == [False, True]
    assert "1 new operator starts empty: b." in check_findings(st.check(old, new)).summary


def sums(folder: Path, count: int) -> st.Savepoint:
    """Return a snapshot with sums of an SQL aggregate, whose fields have no names."""
    kinds = {f"f{n}": pa.int64() for n in range(count)}
    table = pa.table({"key": [1, 2], "s": pa.array([dict.fromkeys(kinds, 1)] * 2, pa.struct(kinds))})
    kind = f"ROW<{', '.join(f'{name} BIGINT' for name in kinds)}>"
    state = st.bootstrap_keyed_state(table, key_type="BIGINT", states={"s": st.value(kind)})
    return snapshot(folder, {"a": state})


def test_the_remedy_of_fields_without_names_is_given_once(tmp_path: Path) -> None:
    """A row of sums changed from two fields to three: one sentence says what the three need."""
    old, new = (sums(tmp_path / str(n), n) for n in (2, 3))
    (error,) = (f for f in findings(old, new) if f.severity == "error")
    assert error.remedy.count("--fill") == 1
    assert "value.f0, value.f1, value.f2: " in error.remedy


def test_an_upgrade_gives_values_a_time_to_live(tmp_path: Path) -> None:
    old, new = (snapshot(tmp_path / n, {"a": timed("INT", NUMBERS, ttl=n == "new")}) for n in ("old", "new"))
    words = ("upgrade", old.path, str(tmp_path / "upgraded"), "--to", new.path)
    assert "--last-access" in CliRunner().invoke(cli, words).output
    done = CliRunner().invoke(cli, [*words, "--last-access", "1000"])
    assert done.exit_code == 0, done.output
    rows = st.load(str(tmp_path / "upgraded"))["a"].to_arrow("keyed_state", ttl="raw")
    assert [row["s"]["value"] for row in rows.to_pylist()] == [1, 2]


def test_a_check_counts_operators_if_no_state_is_left_to_compare(tmp_path: Path) -> None:
    old, new = snapshot(tmp_path / "old", {"a": INT}), snapshot(tmp_path / "new", {"b": INT})
    assert "0 of 1 operator restores unchanged." in check_findings(st.check(old, new)).summary


def test_operators_that_lost_the_same_number_of_bytes_are_dropped_one_by_one(tmp_path: Path) -> None:
    """``drop`` takes one operator: a command for two would drop the last one only."""
    gone = keyed(NUMBERS, "INT", name="t")
    old, new = snapshot(tmp_path / "old", {"a": INT, "b": gone, "c": gone}), snapshot(tmp_path / "new", {"a": INT})
    commands = [f.command for f in findings(old, new) if f.severity == "error"]
    assert commands == [f"statetool drop {old.path} NEW --uid {uid}" for uid in ("b", "c")]


def test_no_command_is_suggested_for_keys_that_cannot_move(tmp_path: Path) -> None:
    """The hash code of a Kryo key is defined in user code, and no formula fits an unreadable one."""
    for name, limit in (("old", 128), ("new", 300)):
        (tmp_path / name).mkdir()
        key = build.kryo("shop.Key")
        subtask = canonical_state.Subtask(
            key=key,
            states=[canonical_state.keyed("v", "value", build.INT)],
            entries=[("v", 3, b"\5\3\0", (7).to_bytes(4, "big"))] if name == "old" else [],
        )
        canonical_state.savepoint(tmp_path / name, [subtask], max_parallelism=limit)
    found = findings(*(st.load(str(tmp_path / n)) for n in ("old", "new")))
    (error,) = (f for f in found if f.severity == "error" and "max parallelism" in f.what)
    assert "statetool cannot write a copy with max parallelism 300" in error.remedy
    assert "rescale" not in error.command


def test_names_that_only_the_new_job_has_do_not_hide_the_migration(tmp_path: Path) -> None:
    """Savepoints of 1.20 store operator ids only. The plan of the migration names operators by id, the check by uid."""
    writer = st.SavepointWriter.new().with_operator("a", INT, parallelism=1, max_parallelism=128)
    old = writer.write(str(tmp_path / "old"), flink_version="1.20")
    new = snapshot(tmp_path / "new", {"a": LONG})
    (error,) = (f for f in findings(old, new) if f.severity == "error")
    assert error.where[0] == "operator a"
    assert error.command == f"statetool migrate {old.path} NEW --to {new.path}"


def test_without_a_plan_only_the_steps_are_suggested(tmp_path: Path) -> None:
    old, new = snapshot(tmp_path / "old", {"a": INT}), snapshot(tmp_path / "new", {"a": LONG})
    check = st.check(old, new)
    assert "statetool migrate A NEW --to B --dry-run" in check.operators[0].states[0].remedy
    (error,) = check_findings(check).findings
    assert error.command == "statetool migrate A NEW --to B --dry-run"


def test_a_new_name_is_not_offered_where_flink_still_reads_the_old_state(tmp_path: Path) -> None:
    """Flink reads state that the job does not register, too: keys, classes and, on heap, all values."""
    for name, (before, after, _, _) in REFUSED.items():
        folder = tmp_path / name
        found = findings(snapshot(folder / "old", before), snapshot(folder / "new", after))
        assert not any("new name" in f.remedy or "another name" in f.remedy for f in found)


def test_the_documentation_counts_the_refused_pairs() -> None:
    """``tests/flink/test_pairs.py`` tries each of them at least once."""
    suites = [s for s in SUITES if not s.whole and not s.by_jars]
    names = {s.name for s in suites}
    refused = {(r.suite, r.pair) for r in pairs.table() if r.flink == "refused" and r.suite in names}
    releases = sorted(map(pairs.short, DEFAULT_VERSIONS))
    runs = [(s, r, r, b) for s in suites for r in releases for b in pairs.BACKENDS[: 1 if s.libraries else None]]
    runs += [(s, releases[0], releases[-1], "rocksdb") for s in suites if s.name in ACROSS]
    tried = [(run[0].name, pair) for run in runs for pair in refused_pairs(*run)]
    assert set(tried) == refused
    count = len(refused)
    text = (Path(__file__).parents[2] / "docs" / "reference" / "checks.md").read_text("utf-8")
    assert f"refused {count} different changes" in text
    assert f"{len(tried)} runs" in text
    asked, restored = len(ASKED), count - len(ASKED)
    shares = [f"{number} ({number / count:.0%})".replace("%", " %") for number in (count, restored, asked)]
    assert f"| {count} | {' | '.join(shares)} |" in text
    assert {p for _, p in refused} >= ASKED


def timed(kind: str, values: Any, *, ttl: bool) -> Any:
    table = pa.table({"id": pa.array([1, 2]), "s": values})
    return st.bootstrap_keyed_state(
        table, key="id", states={"s": st.value(kind, ttl=ttl, last_access_ms=1_790_000_000_000 if ttl else None)}
    )


def lists(of_state: bool) -> Any:
    table = pa.table({"id": [1, 2], "s": pa.array([[1, 2], [3]], pa.list_(pa.int64()))})
    kind = st.list_of("BIGINT") if of_state else st.value(flink.list_of("BIGINT"))
    return st.bootstrap_keyed_state(table, key="id", states={"s": kind})


def kept_as(kind: str) -> Any:
    table = pa.table({"id": [1, 2], "s": pa.array([7, 8])})
    return st.bootstrap_keyed_state(table, key="id", states={"s": getattr(st, kind)("BIGINT")})


#: States of Flink 1.20 before and after, and the rows that the suggested command writes.
CONVERTED: Final = {
    "time to live off": (timed("INT", NUMBERS, ttl=True), timed("INT", NUMBERS, ttl=False), [1, 2]),
    "time to live on": (timed("INT", NUMBERS, ttl=False), timed("INT", NUMBERS, ttl=True), [1, 2]),
    "list state to a value that is a list": (lists(of_state=True), lists(of_state=False), [[1, 2], [3]]),
    "a value that is a list to list state": (lists(of_state=False), lists(of_state=True), [[1, 2], [3]]),
    "value to reducing": (kept_as("value"), kept_as("reducing"), [7, 8]),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_what_can_be_converted_is_not_dropped(tmp_path: Path, name: str) -> None:
    before, after, rows = CONVERTED[name]
    for folder, state in (("old", before), ("new", after)):
        writer = st.SavepointWriter.new().with_operator("a", state, parallelism=1, max_parallelism=128)
        writer.write(str(tmp_path / folder), flink_version="1.20")
    old, new, mended = (str(tmp_path / n) for n in ("old", "new", "mended"))
    shown = CliRunner().invoke(cli, ["check", old, new, "--flink", "1.20"]).stdout
    (command,) = (line.strip() for line in shown.splitlines() if line.startswith("    statetool "))
    assert "tried: the job restores what the suggested command writes" in " ".join(shown.split())
    done = CliRunner().invoke(cli, [mended if word == "NEW" else word for word in shlex.split(command)[1:]])
    assert done.exit_code == 0, done.output
    table = st.load(mended, uids=["a"])["a"].to_arrow("keyed_state").sort_by("key")
    assert table.column("s").to_pylist() == rows


def test_values_of_an_aggregate_are_not_those_of_another_one(tmp_path: Path) -> None:
    """COUNT(DISTINCT x) became COUNT(DISTINCT y): only the plans tell, and values of x would become those of y."""

    def distinct(kind: str, values: Any) -> Any:
        column = pa.array([[(values[0], 1)], [(values[1], 1)]], pa.map_(values.type, pa.int64()))
        table = pa.table({"id": [1, 2], "distinctAcc_0": column})
        return st.bootstrap_keyed_state(table, key="id", states={"distinctAcc_0": st.map_of(kind, "BIGINT")})

    old = snapshot(tmp_path / "old", {"a": distinct("INT", NUMBERS)})
    new = snapshot(tmp_path / "new", {"a": distinct("STRING", TEXTS)})
    (error,) = (f for f in findings(old, new) if f.severity == "error")
    assert "Pass the plan of each snapshot's job" in error.remedy
    assert error.command == f"statetool drop {old.path} NEW --uid a --state distinctAcc_0"
    with pytest.raises(UnsupportedError, match="aggregate of SQL"):
        st.migrate(old, str(tmp_path / "migrated"), to=new)


def test_keys_of_kryo_that_do_not_change_keep_no_value_from_being_converted(tmp_path: Path) -> None:
    for name, kind, size in (("old", build.INT, 4), ("new", build.LONG, 8)):
        (tmp_path / name).mkdir()
        state = canonical_state.keyed("v", "value", kind)
        entries = [("v", 3, b"\5\3\0", (7).to_bytes(size, "big"))]
        subtask = canonical_state.Subtask(key=build.kryo("shop.Key"), states=[state], entries=entries)
        canonical_state.savepoint(tmp_path / name, [subtask])
    old, new = (st.load(str(tmp_path / n)) for n in ("old", "new"))
    plan = st.plan_migration(old, new)
    assert (plan.refused, [s.state for s in plan.states]) == ((), ["v"])


def test_fields_that_change_places_are_not_taken_by_position(tmp_path: Path) -> None:
    """Whether two fields without names were exchanged, or each has another type, only the user knows."""
    kinds = {"old": ("INT", "FLOAT"), "new": ("FLOAT", "INT")}
    arrow = {"INT": pa.int32(), "FLOAT": pa.float32()}
    for name, of in kinds.items():
        row = pa.struct({f"f{i}": arrow[k] for i, k in enumerate(of)})
        values = pa.array([{"f0": 1, "f1": 2}] * 2, row)
        snapshot(tmp_path / name, {"a": keyed(values, flink.tuple_of(*of))})
    old, new = (st.load(str(tmp_path / n)) for n in kinds)
    (*_, error) = (f for f in findings(old, new) if f.severity == "error")
    assert error.command == f"statetool migrate {old.path} NEW --to {new.path} --dry-run"
    assert "their types change places" in error.remedy
    plan = st.plan_migration(old, new).renaming({"a.s.value.f0": "f1", "a.s.value.f1": "f0"})
    st.migrate(old, str(tmp_path / "mended"), plan=plan)
    rows = st.load(str(tmp_path / "mended"))["a"].to_arrow("keyed_state").column("s").to_pylist()
    assert rows == [{"f0": 2.0, "f1": 1}] * 2


@pytest.fixture(scope="module")
def job_snapshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(job_pairs.SNAPSHOTS, tmp_path_factory.mktemp("job-pairs"))


def refused_jobs() -> list[job_pairs.Outcome]:
    tried = {r.pair for r in job_remedies.table()}
    rows = job_remedies.refused(job_pairs.table(), ())
    return [r for r in rows if r.pair in tried and r.written_by == r.release == "2.3"]


@pytest.mark.parametrize(
    "rows",
    [pytest.param(refused_jobs()[5::12], id="some"), pytest.param(refused_jobs(), id="all", marks=pytest.mark.full)],
)
def test_the_commands_for_refused_jobs_are_those_of_the_table(
    job_snapshots: Path, tmp_path: Path, rows: list[job_pairs.Outcome]
) -> None:
    """``tests/flink/test_job_remedies.py`` restores what some of them write."""
    stored = {(r.pair, r.written_by, r.release, r.known): r for r in job_remedies.table()}
    for row in rows:
        for known in job_remedies.KNOWN:
            commands, _, _ = job_remedies.mend(job_snapshots, row, known, tmp_path)
            found = stored[row.pair, row.written_by, row.release, known]
            assert job_remedies.verbs(commands) == found.commands, f"{row.pair} {known}"


def test_the_documentation_counts_the_refused_jobs() -> None:
    rows = job_remedies.table()
    page = (Path(__file__).parents[2] / "docs" / "reference" / "checks.md").read_text("utf-8")
    for known, head in (("savepoint", "a savepoint of the new job and both jars"), ("jars", "both jars alone")):
        of = [job_remedies.judge(r, rows) for r in rows if r.known == known]
        counts = [of.count(word) for word in ("right", "choice", "none", "nothing", "left out", "refused")]
        assert sum(counts) == len(of), "values are right, or there are none"
        assert f"| {head} | {len(of)} | {' | '.join(map(str, counts))} |" in page
