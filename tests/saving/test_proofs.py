"""Proofs of what was written: a savepoint that fails its proof is not published, and the target is free for the next write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool as st
from statetool.cli.main import cli
from statetool.errors import EncodeError, FormatError, StatetoolError, UnsupportedError
from statetool.io import files, targets
from statetool.saving.verbs.erase import ErasePlan
from tests.support.servers.object_store import object_store
from tests.support.zoo import ZOO


@pytest.fixture(scope="module")
def bucket() -> Iterator[Any]:
    with object_store("proofs") as store:
        yield store


@pytest.fixture(params=["local", "memory"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "dst" / "new") if request.param == "local" else f"memory://{tmp_path.name}/dst/new"


def erase_nothing(target: str, **options: Any) -> object:
    """Write a savepoint that still has the key."""

    def forget(plan: ErasePlan) -> None:
        plan.changes.clear()  # type: ignore[attr-defined]

    return st.erase(ZOO, target, ["timer-3"], on_plan=forget, **options)


def keep_everything(target: str, **options: Any) -> object:
    def forget(plan: ErasePlan) -> None:
        plan.changes.clear()  # type: ignore[attr-defined]

    return st.keep(ZOO, target, ["timer-3"], operators=["timers"], on_plan=forget, **options)


def check_free(target: str) -> None:
    """Check that nothing is left, and that a write to the target succeeds."""
    assert not files.exists(files.join(target, "_metadata"))
    assert not files.is_dir(target) or not targets.list_sizes(target)
    st.erase(ZOO, target, ["timer-3"])
    assert st.verify(target, deep=True).ok
    assert "timer-3" not in st.load(target)["timers"].to_arrow()["key"].to_pylist()


@pytest.mark.parametrize("write", [erase_nothing, keep_everything])
def test_a_failed_proof_publishes_nothing(write: Callable[..., object], target: str) -> None:
    with pytest.raises(FormatError, match="of the removed keys"):
        write(target)
    check_free(target)


def test_neither_does_it_in_an_object_store(bucket: Any) -> None:
    with pytest.raises(FormatError, match="of the removed keys"):
        erase_nothing("s3://proofs/new")
    check_free("s3://proofs/new")


@pytest.mark.full
def test_neither_does_it_on_spark(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="of the removed keys"):
        erase_nothing(str(tmp_path / "new"), spark=spark)
    check_free(str(tmp_path / "new"))
    proved = st.erase(ZOO, str(tmp_path / "other"), ["timer-3"], spark=spark).proof
    assert proved is not None
    assert proved.entries_of_keys == 0


@pytest.mark.full
def test_a_dry_run_on_spark_converts_and_writes_nothing(spark: Any, tmp_path: Path) -> None:
    old, new, target = wider(tmp_path / "old", "BIGINT"), wider(tmp_path / "job", "INT"), str(tmp_path / "new")
    options: dict[str, Any] = {"to": new, "accept": ["op.v.value"], "spark": spark, "dry_run": True}
    assert st.migrate(old, target, **options).rows
    st.rescale(old, target, 90, spark=spark, dry_run=True)
    large = pa.table({"id": [1, 2], "v": [1, 1 << 40]})
    state = st.bootstrap_keyed_state(large, key="id", states={"v": st.value("BIGINT")})
    writer = st.SavepointWriter.new().with_operator("op", state, parallelism=2)
    writer.write(str(tmp_path / "large"), flink_version="2.3")
    with pytest.raises(EncodeError, match="does not fit"):
        st.migrate(str(tmp_path / "large"), target, **options)
    assert not Path(target).exists()


def test_the_newest_snapshot_is_never_one_that_is_being_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the proof runs, neither ``--latest`` nor another reader finds the new savepoint."""
    from statetool.saving.verbs import erase as erasing

    st.copy(ZOO, str(tmp_path / "first"))
    seen: list[str] = []
    prove = erasing.prove

    def look(*arguments: Any) -> Any:
        seen.append(CliRunner().invoke(cli, ["info", str(tmp_path), "--latest"]).output)
        seen.append("found" if (tmp_path / "new" / "_metadata").exists() else "absent")
        return prove(*arguments)

    monkeypatch.setattr(erasing, "prove", look)
    st.erase(ZOO, str(tmp_path / "new"), ["timer-3"])
    assert "first" in seen[0]
    assert f"{tmp_path}/new" not in seen[0]
    assert seen[1:] == ["absent"]
    assert (tmp_path / "new" / "_metadata").exists()


def test_a_sample_that_cannot_be_measured_is_not_published(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from statetool.saving.verbs import sample as sampling

    def fail(*_: object) -> None:
        raise FormatError("damaged")

    with monkeypatch.context() as patch:
        patch.setattr(sampling, "measure_sample", fail)
        with pytest.raises(FormatError, match="damaged"):
            st.sample(ZOO, target, key_groups="0-3")
    check_free(target)


def wider(path: Path, kind: str) -> str:
    table = pa.table({"id": [1, 2], "v": [1, 2]})
    state = st.bootstrap_keyed_state(table, key="id", states={"v": st.value(kind)})
    writer = st.SavepointWriter.new().with_operator("op", state, parallelism=2)
    writer.write(str(path), inline_bytes=0, flink_version="2.3")
    return str(path)


def test_an_upgrade_whose_result_is_damaged_or_does_not_restore_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from statetool.analysis.verification import verify
    from statetool.compatibility import check

    old, new, target = wider(tmp_path / "old", "INT"), wider(tmp_path / "job", "BIGINT"), tmp_path / "new"
    verified, checked = verify.verify_inventory, check.check_inventories
    calls: list[str] = []

    def damaged(inventory: Any, *arguments: Any, **options: Any) -> Any:
        from dataclasses import replace

        from statetool.analysis.verification.problems import Problem

        problem = Problem(
            severity="error", problem="a value ends early", operator="op", subtask=0, state="v", file=None, offset=None
        )
        return replace(verified(inventory, *arguments, **options), problems=(problem,))

    def refusing(inventory: Any, *arguments: Any) -> Any:
        from dataclasses import replace

        calls.append(inventory.path)
        found = checked(inventory, *arguments)
        return found if len(calls) == 1 else replace(found, verdict="not", reason="op: the key differs")

    with monkeypatch.context() as patch:
        patch.setattr(verify, "verify_inventory", damaged)
        with pytest.raises(FormatError, match=r"a value ends early.*nothing was published"):
            st.upgrade(old, str(target), to=new)
    assert not target.exists()
    with monkeypatch.context() as patch:
        patch.setattr(check, "check_inventories", refusing)
        with pytest.raises(UnsupportedError, match=r"op: the key differs.*nothing was published"):
            st.upgrade(old, str(target), to=new)
    assert not target.exists()
    assert st.upgrade(old, str(target), to=new).ok


def test_a_migration_whose_states_the_job_does_not_restore_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from statetool.compatibility import check

    old, target = wider(tmp_path / "old", "INT"), tmp_path / "new"
    job = wider(tmp_path / "job", "BIGINT")
    checked = check.check_inventories

    def refusing(*arguments: Any) -> Any:
        found = checked(*arguments)
        operators = (replace(o, states=tuple(replace(s, verdict="not") for s in o.states)) for o in found.operators)
        return replace(found, verdict="not", operators=tuple(operators))

    with monkeypatch.context() as patch:
        patch.setattr(check, "check_inventories", refusing)
        done = CliRunner().invoke(cli, ["migrate", old, str(target), "--to", job])
    assert done.exit_code == 1
    assert "nothing was published" in done.stderr
    assert "written to" not in done.stderr
    assert not target.exists()
    done = CliRunner().invoke(cli, ["migrate", old, str(target), "--to", job])
    assert done.exit_code == 0, done.output
    assert f"written to {target}" in done.stderr


def test_a_migration_for_a_job_without_an_operator_is_published_to_be_dropped_from(tmp_path: Path) -> None:
    old, target = wider(tmp_path / "old", "INT"), tmp_path / "new"
    other = str(tmp_path / "other")
    values = st.bootstrap_keyed_state(pa.table({"key": [1], "s": [1]}))
    st.SavepointWriter.new().with_operator("renamed", values).write(other, flink_version="2.3")
    done = CliRunner().invoke(cli, ["migrate", old, str(target), "--to", other])
    assert done.exit_code == 1
    assert (
        f"Checked against {other}: the new job does not restore the result: op: The new job has no operator with this uid"
        in done.stderr
    )
    assert f"written to {target}" in done.stderr


def test_a_callback_sees_the_staged_savepoint_and_can_refuse_it(tmp_path: Path) -> None:
    old, job, target = wider(tmp_path / "old", "INT"), wider(tmp_path / "job", "BIGINT"), str(tmp_path / "new")

    def refuse() -> None:
        assert st.load(target)["op"].to_arrow()["v"].to_pylist() == [1, 2]
        assert st.verify(target, deep=True).ok
        raise UnsupportedError("not this one")

    with pytest.raises(StatetoolError, match="not this one"):
        st.migrate(old, target, to=job, on_staged=refuse)
    assert not Path(target).exists()
    st.migrate(old, target, to=job, on_staged=lambda: st.load(target))
    assert sorted(st.load(target)["op"].to_arrow()["v"].to_pylist()) == [1, 2]
