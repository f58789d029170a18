"""Every writing command, with a failure at each file system call: a complete savepoint or none, and the next write succeeds."""

from __future__ import annotations

import _thread
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

import pyarrow as pa
import pytest

import statetool as st
from statetool.demo import SAVEPOINT
from statetool.errors import StatetoolError, TargetExistsError, WriteFailedError
from statetool.io import files, targets
from statetool.saving.composition import Composition
from tests.support.failures.failing_io import KINDS, FailingIO
from tests.support.servers.object_store import object_store

DEMO = Path(SAVEPOINT).parent
Verb = Callable[[str, Path, bool], object]
#: Failures to try at a call.
Kinds = Callable[[int], tuple[tuple[str, bool], ...]]


def new_savepoint(target: str, over: bool) -> object:
    table = pa.table({"id": range(50), "v": range(50)})
    writer = st.SavepointWriter.new().with_operator("op", st.bootstrap_keyed_state(table, key="id"), parallelism=2)
    return writer.write(target, take_over=over)


def edited_savepoint(target: str, over: bool) -> object:
    return st.SavepointWriter.from_existing(st.load(SAVEPOINT)).change_uid("timers", "t").write(target, take_over=over)


def transformed_savepoint(target: str, over: bool) -> object:
    writer = st.SavepointWriter.from_existing(st.load(SAVEPOINT)).transform("timers", lambda table: table)
    return writer.write(target, take_over=over)


#: In order: commands that write a snapshot; the folder contains their sources.
VERBS: dict[str, Verb] = {
    "copy": lambda target, folder, over: st.copy(str(folder / "files"), target, threads=1, take_over=over),
    "rescale": lambda target, folder, over: st.rescale(str(folder / "files"), target, 64, take_over=over),
    "convert": lambda target, folder, over: st.convert(str(folder / "files"), target, take_over=over),
    "uid": lambda target, folder, over: st.change_uids(
        str(folder / "files"), target, {"op": "renamed"}, take_over=over
    ),
    "erase": lambda target, folder, over: st.erase(SAVEPOINT, target, ["timer-3"], take_over=over),
    "set_values": lambda target, folder, over: st.set_values(
        SAVEPOINT, target, "with-ttl", 4, {"plain": 1}, take_over=over
    ),
    "drop": lambda target, folder, over: st.drop(SAVEPOINT, target, ["timers"], take_over=over),
    "migrate": lambda target, folder, over: st.migrate(
        str(folder / "files"), target, to=str(folder / "wider"), accept=["op.v.value"], take_over=over
    ),
    "bootstrap": lambda target, folder, over: new_savepoint(target, over),
    "edit": lambda target, folder, over: edited_savepoint(target, over),
    "transform": lambda target, folder, over: transformed_savepoint(target, over),
    "edit_source": lambda target, folder, over: st.edit_source(
        str(DEMO / "kafka-source"), target, "orders", to="latest", take_over=over
    ),
    "convert_consumer": lambda target, folder, over: st.convert_consumer(
        str(folder / "consumer"), target, "kafka", take_over=over
    ),
    "convert_source": lambda target, folder, over: st.convert_source(
        str(folder / "source"), target, "kafka", take_over=over
    ),
    "forget": lambda target, folder, over: st.forget_transactions(
        str(DEMO / "kafka-sink"), target, "514dc31230726fb6b190b5bf50bbec8f", ["orders-out-0-1"], take_over=over
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, connector_cases: Path) -> Path:
    """Sources: a savepoint with files, one with a wider type, and those of both Kafka sources."""
    folder = tmp_path_factory.mktemp("sources")
    table = pa.table({"id": range(50), "v": range(50)})
    for name, kind in (("files", "BIGINT"), ("wider", "DOUBLE")):
        state = st.bootstrap_keyed_state(table, key="id", states={"v": st.value(kind)})
        writer = st.SavepointWriter.new().with_operator("op", state, parallelism=2)
        writer.write(str(folder / name), inline_bytes=0, flink_version="2.3")
    legacy = connector_cases / "v1_20_5-flink-kafka-consumer" / "snapshot"
    (label,) = (
        r.operator for r in st.load(str(legacy)).connector_rows("sources") if r.connector == "flink-kafka-consumer"
    )
    st.change_uids(str(legacy), str(folder / "consumer"), {label: "kafka"})
    st.convert_consumer(str(folder / "consumer"), str(folder / "source"), "kafka")
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
    defaults = Composition.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "inline_bytes", 0)


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
@pytest.mark.parametrize("verb", ["copy", "rescale", "edit_source", "forget"])
def test_so_does_a_failure_of_an_object_store(verb: str, folder: Path, bucket: Any) -> None:
    target = f"s3://writes/{verb}"
    tried = try_all(lambda target, over: VERBS[verb](target, folder, over), target, one_kind)
    assert tried.complete
    assert tried.nothing


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
