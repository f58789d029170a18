"""Two-phase publishing: what is left by commits, failures, late tasks and kills."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from statetool.errors import FormatError, SnapshotNotFoundError, TargetExistsError
from statetool.formats.stream import Stream
from statetool.io import files, targets
from statetool.write.publish import Publication, StagedFile, Staging


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
    with pytest.raises(SnapshotNotFoundError, match="is over"):
        late.__exit__(None)
    with pytest.raises(SnapshotNotFoundError, match="is over"):
        staging.create()
    assert list(targets.list_sizes(target)) == ["_metadata"]


def test_the_next_write_removes_what_a_killed_one_left(target: str) -> None:
    killed = Publication(target)
    killed.__enter__()
    stage(killed.staging, b"left behind")
    with Publication(target) as publication:
        staged = stage(publication.staging, b"new")
        with pytest.raises((SnapshotNotFoundError, FormatError)):
            killed.commit(b"old", [])
        publication.commit(b"m", [staged])
    assert set(targets.list_sizes(target)) == {"_metadata", staged.name}


def test_a_stream_is_copied(target: str) -> None:
    with Publication(target) as publication:
        staged = publication.staging.copy(Stream(file="m", start=7, size_bytes=5, inline=b"hello"))
        publication.commit(b"m", [staged])
    assert staged.size_bytes == 5
    assert files.read_whole(files.join(target, staged.name)) == b"hello"


def test_a_kill_at_any_step_leaves_all_or_no_metadata(tmp_path: Path) -> None:
    code = textwrap.dedent(
        """
        import os, signal, sys
        from statetool.io import targets
        from statetool.write.publish import Publication
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
    target = tmp_path / "sp"
    finished = False
    kills = 0
    for step in range(1, 40):
        done = subprocess.run([sys.executable, "-c", code, str(step), str(target)], capture_output=True, check=False)
        if (target / "_metadata").exists():
            assert (target / "_metadata").read_bytes() == b"meta"
            assert [p.read_bytes() for p in target.iterdir() if "state" in p.name and "-state-" in p.name] == [b"abc"]
            for path in target.iterdir():
                path.unlink()
            target.rmdir()
        if done.returncode == 0:
            finished = True
            break
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
        kills += 1
    assert finished
    assert kills > 10
