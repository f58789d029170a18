"""Two-phase publishing: the files left by commits, failures, late tasks and kills."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from statetool.errors import FormatError, SnapshotNotFoundError, TargetExistsError, WriteFailedError
from statetool.formats.stream import Stream
from statetool.io import files, targets
from statetool.saving.publish import Publication, StagedFile, Staging


@pytest.fixture(params=["local", "memory"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "sp") if request.param == "local" else f"memory://{tmp_path.name}/sp"


def stage(staging: Staging, data: bytes) -> StagedFile:
    with staging.create("keyed") as f:
        f.write(data[:2])
        f.write(data[2:])
    return f.staged


def test_commit_leaves_metadata_and_the_named_files_only(target: str) -> None:
    with Publication(target) as publication:
        staging: Staging = pickle.loads(pickle.dumps(publication.staging))
        won, lost = stage(staging, b"winner"), stage(staging, b"other attempt")
        assert not files.exists(files.join(target, "_metadata"))
        uri = publication.commit(b"meta", [won])
    assert set(targets.list_sizes(target)) == {"_metadata", won.name}
    assert files.read_whole(uri) == b"meta"
    assert files.read_whole(files.join(target, won.name)) == b"winner"
    assert lost.name != won.name


def test_a_failure_removes_everything(target: str) -> None:
    with pytest.raises(RuntimeError, match="boom"), Publication(target) as publication:  # noqa: PT012
        stage(publication.staging, b"abc")
        raise RuntimeError("boom")
    assert not files.exists(target)


def test_an_attempt_that_fails_leaves_no_file(target: str) -> None:
    with Publication(target) as publication:
        with pytest.raises(RuntimeError), publication.staging.create() as f:  # noqa: PT012
            f.write(b"half")
            raise RuntimeError("boom")
        names = targets.list_sizes(target)
        assert list(names) == [publication.staging.marker.rpartition("/")[2]]


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = str(tmp_path / "sp")
    told = pytest.raises(WriteFailedError, match=r"No space left .*sp/.*free some space")
    with told as caught, Publication(target) as publication:
        monkeypatch.setattr(os, "fsync", full)
        stage(publication.staging, b"abc")
    monkeypatch.undo()
    assert isinstance(caught.value, OSError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert os.listdir(tmp_path) == []
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteFailedError, match="No space left"), Publication(target):
        pass
    assert os.listdir(tmp_path) == []


def test_a_full_disk_under_temporary_files_is_told(tmp_path: Path) -> None:
    with pytest.raises(WriteFailedError, match="No space left"), Publication(str(tmp_path / "sp")):
        full()
    assert os.listdir(tmp_path) == []


def test_a_target_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(WriteFailedError, match="Not a directory"), Publication(str(tmp_path / "file" / "sp")):
        pass

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "makedirs", denied)
    with pytest.raises(WriteFailedError, match=r"Permission denied .*that you may write to"):
        Publication(str(tmp_path / "sp")).__enter__()


_SMALL_FILES = """
    import resource, sys
    from statetool.cli.main import cli
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    cli(["copy", sys.argv[1], sys.argv[2]])
"""


def test_the_command_line_tells_what_the_system_refuses(corpus: Path, tmp_path: Path) -> None:
    """The system limits the file size here: no file may be larger than 20,000 bytes."""
    source = corpus / "v2_3_0-rocksdb-canonical" / "snapshot"
    told = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_SMALL_FILES), str(source), str(tmp_path / "copy")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.returncode == 3, told.stderr
    assert "error: cannot write: File too large [file " in told.stderr
    assert "Traceback" not in told.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", ["_metadata", "other"])
def test_an_existing_target_is_refused(target: str, content: str) -> None:
    targets.make_dir(target)
    targets.put_new(files.join(target, content), b"x")
    with pytest.raises(TargetExistsError, match="nothing is overwritten"), Publication(target):
        pass
    assert files.read_whole(files.join(target, content)) == b"x"


def test_an_empty_directory_is_a_target(tmp_path: Path) -> None:
    with Publication(str(tmp_path)) as publication:
        publication.commit(b"m", [])
    assert os.listdir(tmp_path) == ["_metadata"]


def test_a_file_of_another_size_is_not_published(target: str) -> None:
    with pytest.raises(FormatError, match="should have 9 bytes, found 3"), Publication(target) as publication:  # noqa: PT012
        staged = stage(publication.staging, b"abc")
        publication.commit(b"m", [StagedFile(staged.name, 9)])
    assert not files.exists(target)


def test_a_task_after_the_end_leaves_nothing(target: str) -> None:
    with Publication(target) as publication:
        staging = publication.staging
        late = staging.create()
        publication.commit(b"m", [])
    with pytest.raises(SnapshotNotFoundError, match="has ended"):
        late.__exit__(None)
    with pytest.raises(SnapshotNotFoundError, match="has ended"):
        staging.create()
    assert list(targets.list_sizes(target)) == ["_metadata"]


def test_the_next_write_removes_what_a_killed_one_left(target: str) -> None:
    killed = Publication(target)
    killed.__enter__()
    stage(killed.staging, b"left behind")
    with (
        pytest.raises(TargetExistsError, match=r"another write .* process \d+ on .*take_over=True"),
        Publication(target),
    ):
        pass
    with Publication(target, take_over=True) as publication:
        staged = stage(publication.staging, b"new")
        with pytest.raises((SnapshotNotFoundError, FormatError)):
            killed.commit(b"old", [])
        publication.commit(b"m", [staged])
    assert set(targets.list_sizes(target)) == {"_metadata", staged.name}


def test_a_stream_is_copied(target: str) -> None:
    with Publication(target) as publication:
        (staged,) = publication.staging.copy([Stream(file="m", start=7, size_bytes=5, inline=b"hello")])
        publication.commit(b"m", [staged])
    assert staged.size_bytes == 5
    assert files.read_whole(files.join(target, staged.name)) == b"hello"


@pytest.mark.full
def test_a_kill_at_any_step_leaves_all_or_no_metadata(tmp_path: Path) -> None:
    code = textwrap.dedent(
        """
        import os, signal, sys
        from statetool.io import targets
        from statetool.saving.publish import Publication
        step, target = int(sys.argv[1]), sys.argv[2]
        calls = 0
        def die_at(f):
            def wrapped(*a, **k):
                global calls
                calls += 1
                if calls == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                return f(*a, **k)
            return wrapped
        for module, names in ((os, ("link", "unlink", "scandir", "fsync", "makedirs")),):
            for name in names:
                setattr(module, name, die_at(getattr(module, name)))
        with Publication(target) as p:
            with p.staging.create() as f:
                f.write(b"abc")
            p.commit(b"meta", [f.staged])
        """
    )
    finished = False
    kills = 0
    for step in range(1, 40):
        target = tmp_path / str(step)
        done = subprocess.run([sys.executable, "-c", code, str(step), str(target)], capture_output=True, check=False)
        if not (target / "_metadata").exists():
            with Publication(str(target)) as publication:
                publication.commit(b"meta", [stage(publication.staging, b"abc")])
            assert len(os.listdir(target)) == 2
        assert (target / "_metadata").read_bytes() == b"meta"
        assert b"abc" in [p.read_bytes() for p in target.iterdir()]
        if done.returncode == 0:
            finished = True
            break
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
        kills += 1
    assert finished
    assert kills > 10
