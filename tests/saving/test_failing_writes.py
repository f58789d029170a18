"""Every writing command, with a failure at each file system call: a complete savepoint or none, and the next write succeeds."""

from __future__ import annotations

import _thread
import itertools
import shutil
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import statetool as st
from statetool.errors import StatetoolError, TargetExistsError, WriteFailedError
from statetool.io import files, targets
from tests.support.failures.failing_io import KINDS, FailingIO
from tests.support.failures.verbs import VERBS, put_state_into_files, split, write_sources
from tests.support.servers.object_store import object_store

#: Failures to try at a call.
Kinds = Callable[[int], tuple[tuple[str, bool], ...]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, connector_cases: Path) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    write_sources(folder, connector_cases / "v1_20_5-flink-kafka-consumer" / "snapshot")
    return folder


@pytest.fixture(scope="module")
def bucket() -> Iterator[Any]:
    with object_store("writes") as store:
        yield store


@dataclass
class Tried:
    """Counts for one command: calls, and the remains of failures."""

    points: int = 0
    complete: int = 0
    nothing: int = 0


def try_all(write: Callable[[str, bool], object], target: str, kinds: Kinds) -> Tried:
    """Let each call fail, until a write makes fewer calls."""
    tried, point = Tried(), 0
    while True:
        point += 1
        for kind in kinds(point):
            with pytest.MonkeyPatch.context() as patch:
                failing = FailingIO(point, kind, patch)
                error: BaseException | None = None
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", UserWarning)
                        write(target, False)
                except (StatetoolError, OSError, KeyboardInterrupt) as raised:
                    error = raised
            if not failing.failed_call:
                assert error is None
                check_whole(target)
                return tried
            tried.points += 1
            where = f"{failing.failed_call} {kind}: {error!r}"
            if files.exists(files.join(target, "_metadata")):
                tried.complete += 1
                check_whole(target)
                if error is not None:
                    assert "complete" in str(error) or "unknown" in str(error), where
            else:
                assert error is not None, where
                tried.nothing += 1
                write(target, True)
                check_whole(target)
            clear(target)


def check_whole(target: str) -> None:
    verification = st.verify(target)
    assert verification.ok, verification.problems


def clear(target: str) -> None:
    if files.is_local(target):
        shutil.rmtree(target)
    else:
        targets.remove_tree(target)


@pytest.fixture(autouse=True)
def state_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    put_state_into_files(monkeypatch)


def one_kind(point: int) -> tuple[tuple[str, bool], ...]:
    """Return another kind of failure for each call."""
    return (KINDS[point % len(KINDS)],)


def all_kinds(point: int) -> tuple[tuple[str, bool], ...]:
    return KINDS


@pytest.mark.parametrize(
    ("verb", "kinds"),
    [
        ("uid", one_kind),
        pytest.param("copy", all_kinds, marks=pytest.mark.full),
        *(pytest.param(verb, one_kind, marks=pytest.mark.full) for verb in VERBS if verb not in ("uid", "copy")),
    ],
)
def test_a_failure_at_any_call_leaves_a_whole_savepoint_or_none(
    verb: str, kinds: Kinds, folder: Path, tmp_path: Path
) -> None:
    tried = try_all(lambda target, over: VERBS[verb](target, folder, over), str(tmp_path / "sp"), kinds)
    assert tried.points > 20
    assert tried.complete
    assert tried.nothing
    assert list(tmp_path.iterdir()) == [tmp_path / "sp"]


@pytest.mark.full
def test_a_failure_of_a_split_leaves_both_savepoints_or_none(folder: Path, tmp_path: Path) -> None:
    """Only if the last call for the first one fails, the second one stays alone, and the error says so."""
    first, second = str(tmp_path / "sp"), str(tmp_path / "sp-second")
    found: set[tuple[bool, bool]] = set()
    for point in itertools.count(1):
        error: BaseException | None = None
        with pytest.MonkeyPatch.context() as patch:
            failing = FailingIO(point, KINDS[point % len(KINDS)], patch)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)
                    split(first, folder, False)
            except (StatetoolError, OSError, KeyboardInterrupt) as raised:
                error = raised
        complete = [files.exists(f"{target}/_metadata") for target in (first, second)]
        found.add((complete[0], complete[1]))
        for target, is_there in zip((first, second), complete, strict=True):
            if is_there:
                check_whole(target)
        if not failing.failed_call:
            assert complete == [True, True]
            break
        if complete == [False, True]:
            assert f"{second} is complete" in str(error), failing.failed_call
            clear(second)
        elif complete == [True, False]:
            pytest.fail(f"{failing.failed_call}: only the first: {error!r}")
        if not complete[0]:
            split(first, folder, True)
            check_whole(first)
            check_whole(second)
        clear(first)
        clear(second)
    assert {(False, False), (True, True)} <= found


@pytest.mark.full
@pytest.mark.parametrize(
    "verb",
    [
        "copy",
        "rescale",
        "erase",
        "edit_source",
        "drop_transactions",
        "to_rocksdb",
        "to_forst",
        "to_heap",
        "erase_in_rocksdb",
    ],
)
def test_so_does_a_failure_of_an_object_store(verb: str, folder: Path, bucket: Any) -> None:
    target = f"s3://writes/{verb}"
    tried = try_all(lambda target, over: VERBS[verb](target, folder, over), target, one_kind)
    assert tried.complete
    assert tried.nothing


@pytest.mark.full
@pytest.mark.parametrize("verb", ["erase", "sample", "upgrade"])
def test_a_read_that_an_object_store_refuses_during_a_proof_publishes_nothing(
    verb: str, folder: Path, bucket: Any
) -> None:
    target, reads = f"s3://writes/proof-{verb}", 0
    for refused in itertools.count(1):
        count = 0

        def forbid(method: str, path: str, query: str, refused: int = refused) -> str:
            nonlocal count
            if method == "GET" and f"/proof-{verb}/" in path:
                count += 1
            return "before" if method == "GET" and count >= refused and f"/proof-{verb}/" in path else ""

        bucket.forbid = forbid
        error: Exception | None = None
        try:
            VERBS[verb](target, folder, False)
        except (StatetoolError, OSError) as raised:
            error = raised
        finally:
            bucket.forbid = None
        if error is None:
            check_whole(target)
            break
        reads += 1
        assert "_metadata" not in targets.list_sizes(target), error
        VERBS[verb](target, folder, False)
        check_whole(target)
        clear(target)
    assert reads


@pytest.mark.parametrize("verb", ["to_rocksdb", "to_forst", "to_heap"])
def test_metadata_of_each_native_form_is_the_last_object(verb: str, folder: Path, bucket: Any) -> None:
    """Until then, the directory is not a savepoint."""
    target = f"s3://writes/last-{verb}"
    bucket.requests.clear()
    VERBS[verb](target, folder, False)
    written = [
        path for method, path, _, query in bucket.requests if method in ("PUT", "POST") and "delete" not in query
    ]
    assert len(written) > 3
    assert [path for path in written if path.endswith("/_metadata")] == written[-1:]


def put_of_metadata(method: str, path: str, query: str) -> bool:
    return method == "PUT" and path.endswith("/_metadata")


def test_a_lost_answer_of_the_last_request_is_asked_for(bucket: Any, folder: Path) -> None:
    """The store has ``_metadata``, and returns 403 instead of 200: the write succeeded."""
    target = "s3://writes/lost-answer"
    bucket.forbid = lambda *request: "after" if put_of_metadata(*request) else ""
    try:
        st.copy(str(folder / "files"), target)
    finally:
        bucket.forbid = None
    check_whole(target)


def test_a_refused_listing_after_the_last_request_is_a_warning(bucket: Any, folder: Path) -> None:
    target = "s3://writes/refused-listing"
    published = []

    def forbid(method: str, path: str, query: str) -> str:
        if put_of_metadata(method, path, query):
            published.append(path)
        return "before" if published and "list-type" in query else ""

    bucket.forbid = forbid
    try:
        with pytest.warns(UserWarning, match="is complete, but files that it does not need"):
            st.copy(str(folder / "files"), target)
    finally:
        bucket.forbid = None
    check_whole(target)


def test_what_is_unknown_of_an_object_store_stays(bucket: Any, folder: Path) -> None:
    """Neither the last request nor the following check is answered."""
    target = "s3://writes/unknown"
    published = []

    def forbid(method: str, path: str, query: str) -> str:
        if put_of_metadata(method, path, query):
            published.append(path)
            return "after"
        return "before" if published else ""

    bucket.forbid = forbid
    try:
        with pytest.raises(WriteFailedError, match="unknown whether _metadata was written"):
            st.copy(str(folder / "files"), target)
    finally:
        bucket.forbid = None
    check_whole(target)


def test_the_last_request_of_an_object_store_does_not_overwrite(bucket: Any, folder: Path) -> None:
    """Another write publishes between the check for ``_metadata`` and its creation."""
    target = "s3://writes/race"
    lost: list[str] = []

    def forbid(method: str, path: str, query: str) -> str:
        if put_of_metadata(method, path, query) and not lost:
            lost.append(path)
            st.copy(str(folder / "files"), target, take_over=True)
        return ""

    bucket.forbid = forbid
    try:
        with pytest.raises(TargetExistsError):
            st.copy(str(folder / "wider"), target)
    finally:
        bucket.forbid = None
    check_whole(target)
    assert str(st.load(target).metadata_rows("states")) == str(st.load(str(folder / "files")).metadata_rows("states"))


def test_an_interrupt_during_the_last_request_awaits_its_end(bucket: Any, folder: Path) -> None:
    target = "s3://writes/interrupted"
    assert threading.current_thread() is threading.main_thread()

    def forbid(method: str, path: str, query: str) -> str:
        if put_of_metadata(method, path, query):
            _thread.interrupt_main()
            time.sleep(0.3)
        return ""

    bucket.forbid = forbid
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell starts background jobs with SIGINT ignored
    try:
        with pytest.raises(KeyboardInterrupt, match=f"the savepoint in {target} is complete"):
            st.copy(str(folder / "files"), target)
    finally:
        bucket.forbid = None
        signal.signal(signal.SIGINT, before)
    check_whole(target)


def test_an_interrupt_while_the_thread_of_the_last_request_starts(
    bucket: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No upload is going on that nobody waits for."""
    target = "s3://writes/starting"
    requested = threading.Event()
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        caller = sys._getframe(3)
        if caller.f_code.co_name == "_put_new" and caller.f_locals["uri"].endswith("_metadata"):
            requested.wait(1)
            raise KeyboardInterrupt

    def forbid(method: str, path: str, query: str) -> str:
        if put_of_metadata(method, path, query):
            requested.set()
            time.sleep(0.3)
        return ""

    bucket.forbid = forbid
    try:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", interrupted)
            with pytest.raises(KeyboardInterrupt, match="it is unknown whether"):
                st.copy(str(folder / "files"), target)
        assert not requested.is_set()
    finally:
        bucket.forbid = None
    assert "_metadata" not in targets.list_sizes(target)
