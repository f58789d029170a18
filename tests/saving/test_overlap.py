"""Targets inside their source, and invalid paths."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import statetool as st
from statetool.cli.main import cli
from statetool.errors import OptionError, SnapshotNotFoundError, StatetoolError, TargetExistsError
from statetool.saving.overlap import check_outside
from tests.support.snapshots.trees import JOB, checkpoint_root, link
from tests.support.zoo import ZOO

DEMO = Path(ZOO).parent
#: In order: operations that write ``<source>/inside`` from its source, a copy of one of the demo's snapshots.
VERBS: dict[str, tuple[str, Callable[[str, str], object]]] = {
    "copy": ("savepoint", lambda source, target: st.copy(source, target)),
    "copy --dry-run": ("savepoint", lambda source, target: st.copy(source, target, dry_run=True)),
    "rescale": ("savepoint", lambda source, target: st.rescale(source, target, 64)),
    "rescale --dry-run": ("savepoint", lambda source, target: st.rescale(source, target, 64, dry_run=True)),
    "convert": ("savepoint", lambda source, target: st.convert(source, target)),
    "uid": ("savepoint", lambda source, target: st.change_uids(source, target, {"timers": "t"})),
    "erase": ("savepoint", lambda source, target: st.erase(source, target, ["timer-3"])),
    "sample": ("savepoint", lambda source, target: st.sample(source, target, keys=2)),
    "set_values": ("savepoint", lambda source, target: st.set_values(source, target, "with-ttl", 4, {"plain": 1})),
    "purge": ("savepoint", lambda source, target: st.purge(source, target, {"ttl-map": 1})),
    "drop": ("savepoint", lambda source, target: st.drop(source, target, ["timers"])),
    "migrate": ("savepoint", lambda source, target: st.migrate(source, target, to=ZOO)),
    "migrate --to": ("savepoint", lambda source, target: st.migrate(ZOO, target, to=source)),
    "edit": ("savepoint", lambda source, target: st.SavepointWriter.from_existing(st.load(source)).write(target)),
    "edit_source": ("kafka-source", lambda source, target: st.edit_source(source, target, "orders", to="latest")),
    "to_kafka_source": ("kafka-source", lambda source, target: st.to_kafka_source(source, target, "orders")),
    "drop_transactions": ("kafka-sink", lambda source, target: st.drop_transactions(source, target, "out", ["x"])),
}


@pytest.fixture
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return link(DEMO / request.param, tmp_path / "source")


@pytest.mark.parametrize(
    ("source", "write"), [pytest.param(*verb, id=name) for name, verb in VERBS.items()], indirect=["source"]
)
def test_every_verb_refuses_a_target_inside_its_source(source: Path, write: Callable[[str, str], object]) -> None:
    if write is VERBS["drop_transactions"][1]:
        uid = next(r.operator for r in st.load(str(source)).connector_rows("transactions"))
        write = lambda source, target: st.drop_transactions(source, target, uid, ["orders-out-0-1"])  # noqa: E731
    for target in ("inside", "deeper/inside", "../source/inside"):
        with pytest.raises(OptionError, match=r"inside the source snapshot: .*source\. choose"):
            write(str(source), str(source / target))
    assert os.listdir(source) == ["_metadata"]


def test_commands_refuse_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = link(DEMO / "savepoint", tmp_path / "source")
    (tmp_path / "other-name").symlink_to(source)
    monkeypatch.chdir(source)
    for command in (["copy", ".", "inside"], ["rescale", "../other-name", "inside", "--max-parallelism", "64"]):
        refused = CliRunner().invoke(cli, command)
        assert refused.exit_code == 2
        assert "inside the source snapshot" in refused.stderr
    assert os.listdir(source) == ["_metadata"]


def test_directories_of_a_checkpoint_are_its_own(corpus: Path, tmp_path: Path) -> None:
    root = checkpoint_root(corpus, tmp_path) / JOB
    checkpoint = max(root.glob("chk-*"))
    for inside in (f"{checkpoint.name}/x", "shared/x", "taskowned", "taskowned/x"):
        with pytest.raises(OptionError, match="inside the source snapshot"):
            st.copy(str(checkpoint), str(root / inside))
    st.copy(str(checkpoint), str(root / "beside"))
    assert st.verify(str(root / "beside")).ok


def test_directories_that_absolute_paths_name_are_its_own(tmp_path: Path) -> None:
    state = st.bootstrap_keyed_state(pa.table({"id": range(9), "v": range(9)}), key="id")
    base = st.SavepointWriter.new().with_operator("op", state).write(str(tmp_path / "base"), inline_bytes=0)
    changed = st.SavepointWriter.from_existing(base).change_uid("op", "renamed")
    changed.write(str(tmp_path / "thin"), reference_files=True)
    with pytest.raises(OptionError, match=r"inside the source snapshot: .*base\."):
        st.copy(str(tmp_path / "thin"), str(tmp_path / "base" / "x"))


@pytest.mark.parametrize(
    ("source", "target", "inside"),
    [
        ("s3://bucket/sp", "s3://bucket/sp/x", True),
        ("s3a://bucket/sp", "s3://bucket/sp/x/", True),
        ("s3://bucket/sp", "s3://bucket/sp-2", False),
        ("s3://bucket/sp", "s3://other/sp/x", False),
        ("s3://bucket/sp", "/bucket/sp/x", False),
    ],
)
def test_uris_are_compared_by_their_parts(source: str, target: str, inside: bool) -> None:
    inventory: Any = type(
        "Stub", (), {"metadata_file": f"{source}/_metadata", "metadata": st.load(ZOO)._inventory.metadata}
    )
    inventory.resolve = lambda stream: None
    if inside:
        with pytest.raises(OptionError, match="inside the source snapshot"):
            check_outside(target, inventory)
    else:
        check_outside(target, inventory)


def test_a_deleted_working_directory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(
        SnapshotNotFoundError, match=r"'x' is a relative path, and the working directory does not exist"
    ):
        st.copy(ZOO, "x")
    for command in (["copy", ZOO, "x"], ["uid", ZOO, "x", "timers=t"], ["copy", "x", str(tmp_path / "y")]):
        told = CliRunner().invoke(cli, command)
        assert told.exit_code == 3, told.output
        assert told.stderr.splitlines()[-1].startswith("error: ")
        assert isinstance(told.exception, SystemExit)
    assert st.copy(ZOO, str(tmp_path / "y")).metadata_file


def test_circular_links_are_told(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(TargetExistsError, match="is a symbolic link that leads nowhere"):
        st.copy(ZOO, str(loop))
    with pytest.raises(StatetoolError, match="cannot write"):
        st.copy(ZOO, str(loop / "x"))
    for source in (loop, loop / "x"):
        with pytest.raises(SnapshotNotFoundError):
            st.copy(str(source), str(tmp_path / "new"))
    assert os.listdir(tmp_path) == ["loop"]
