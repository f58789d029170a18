"""Find the files: Flink opens each file of the snapshot at the place that its handle names.

Follows ``FileStateHandle``, ``RelativeFileStateHandle`` (relative to the directory of ``_metadata``) and ``FsCompletedCheckpointStorageLocation``.
Savepoints have relative paths and can be moved. Incremental checkpoints, change logs and merged files have absolute ones, which Flink, unlike
statetool, does not look for anywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from statetool.compatibility.restore import Restore
from statetool.compatibility.step_verdicts import Assumption
from statetool.compatibility.steps.step import Result, Step, loses, note, refuses
from statetool.compatibility.verdicts import NEW, A, Remedy
from statetool.errors import FormatError, MissingDependencyError, SnapshotNotFoundError, StorageError, several
from statetool.formats.metadata.handles import RelativeFileHandle, SegmentHandle, file_streams
from statetool.formats.metadata.model import handles_of
from statetool.io import files
from statetool.io.deletion import check_deletion
from statetool.io.listing import sizes_in, stat
from statetool.io.origins import may_open
from statetool.snapshot.claimed import claimed_files
from statetool.snapshot.locate import rebase_path

#: From this number of files on, a directory is listed.
_MANY: Final = 4
#: Files that one request for a listing returns.
_LISTED_AT_A_TIME: Final = 1_000
#: Requests with which files in an object store are looked for, unless some are missing or the user wants it (``--all-files``). Reading
#: _metadata takes up to three more.
_MOST_REQUESTS: Final = 6
_SHOWN: Final = 3
#: Flink's plugins for the schemes of paths, and what reads the others.
_PLUGINS: Final = {
    **dict.fromkeys(("s3", "s3a", "s3p"), "flink-s3-fs-hadoop or flink-s3-fs-presto"),
    "gs": "flink-gs-fs-hadoop",
    "oss": "flink-oss-fs-hadoop",
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), "flink-azure-fs-hadoop"),
}
_HADOOP: Final = "Hadoop's classes"
#: Schemes of Flink's file systems for one store.
_S3: Final = ("s3", "s3a", "s3n", "s3p")
_COPY: Final = Remedy(
    "Copy the snapshot from a place that has all of its files, or restore another one.", ("copy", A, NEW)
)


@dataclass(slots=True)
class _Directory:
    """Files of the snapshot in one directory: bytes that each must have at least, and whether that is its size."""

    needed: dict[str, int] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)
    is_relative: bool = False
    #: All files are changelogs, which have a directory of their own (``state.changelog.dstl.dfs.base-path``).
    are_logs: bool = True


@dataclass(slots=True)
class _Looked:
    """Files that are missing, by the directory that was looked into or (``absolute``) that the snapshot names, and those of another length."""

    missing: dict[str, list[str]] = field(default_factory=dict)
    short: dict[str, list[str]] = field(default_factory=dict)
    absolute: dict[str, list[str]] = field(default_factory=dict)
    unseen: list[str] = field(default_factory=list)


def _irrelevant(restore: Restore) -> str:
    if not files.is_local(restore.old.metadata_file):
        return ""
    for handle in handles_of(restore.old.metadata):
        for _ in file_streams(handle):
            return ""
    return "all state is stored in _metadata"


def directories_of(restore: Restore) -> dict[str, _Directory]:
    """Return the files of the snapshot by the directory that Flink opens them in."""
    home = files.parent(restore.old.metadata_file)
    found: dict[str, _Directory] = {}
    for handle in handles_of(restore.old.metadata):
        for stream, is_log in file_streams(handle):
            if "\0" in stream.path:
                raise FormatError(f"a path contains NUL, which no file name does: {stream.path!r}").at(
                    file=restore.old.metadata_file
                )
            is_relative = isinstance(stream, RelativeFileHandle)
            folder, _, name = (files.join(home, stream.path) if is_relative else stream.path).rpartition("/")
            directory = found.get(folder)
            if directory is None:
                directory = found[folder] = _Directory(is_relative=is_relative)
            directory.are_logs &= is_log
            size = 1 if is_log else stream.size_bytes
            if isinstance(stream, SegmentHandle):
                size += stream.start
            elif not is_log:
                directory.whole.add(name)
            directory.needed[name] = max(size, directory.needed.get(name, 0))
    return found


def _look(folder: str, directory: _Directory) -> tuple[list[str], list[str]]:
    """Return the names of files that a directory lacks, and of those that are not as long as the snapshot says."""
    needed, whole = directory.needed, directory.whole
    if len(needed) < _MANY:
        files.forget_listing(folder)
        sizes = {n: f.size_bytes for n in needed if (f := stat(f"{folder}/{n}")) is not None}
    else:
        sizes = sizes_in(folder)
    missing = [n for n in needed if n not in sizes]
    wrong = [n for n, size in needed.items() if n in sizes and sizes[n] != size and (sizes[n] < size or n in whole)]
    return missing, wrong


def _all_exist(restore: Restore) -> Iterator[Result]:
    """M6 to M9, M11: every file exists where Flink looks for it, with the bytes that the snapshot needs."""
    directories = directories_of(restore)
    places, unseen = _places(restore, directories)
    requests = _requests(directories, places)
    count = sum(len(directories[folder].needed) for folder in places)
    found = None
    if requests > _MOST_REQUESTS and not restore.options.all_files:
        some = _some(directories, places)
        tried = _look_in(restore, some, places)
        if not (tried.missing or tried.short or tried.absolute or tried.unseen):
            found = tried
            looked_for = sum(len(d.needed) for d in some.values())
            text = f"{several(count - looked_for, 'file')} of the snapshot that {'was' if count - looked_for == 1 else 'were'} not looked for exist, as the {looked_for} do that were"
            yield Assumption(rule="M6", text=text, option=f"statetool check --all-files, about {requests:,} requests")
    if found is None:
        found = _look_in(restore, directories, places)
        if requests > _MOST_REQUESTS:
            yield note("M6", f"{several(count, 'file')} were looked for, with about {requests:,} requests.")
    unseen += found.unseen
    moved = _found_elsewhere(restore, {f"{folder}/{names[0]}": folder for folder, names in found.absolute.items()})
    gone = {folder: names for folder, names in found.absolute.items() if folder not in moved}
    yield from _report(restore, found.missing | gone, found.short)
    yield from _moved(restore, directories, moved, unseen)
    yield from _file_systems(restore, directories)


def _file_systems(restore: Restore, directories: Mapping[str, _Directory]) -> Iterator[Result]:
    """M9: Flink needs a plugin and credentials for each place that the pointer and the handles name."""
    named = (restore.old.metadata_file, *(f for f, d in directories.items() if not d.is_relative))
    buckets = sorted({"/".join(uri.split("/")[:3]) for uri in named if not files.is_local(uri)})
    if buckets:
        plugins = sorted({_PLUGINS.get(b.partition("://")[0], _HADOOP) for b in buckets})
        shown = ", ".join(buckets[:_SHOWN]) + (", ..." if len(buckets) > _SHOWN else "")
        text = f"The new cluster needs access to {shown}, where the snapshot is stored: the file system ({', '.join(plugins)}), and its credentials."
        yield note("M9", text)


def _places(restore: Restore, directories: Mapping[str, _Directory]) -> tuple[dict[str, str], list[str]]:
    """Return the place to look in of each directory, and the directories that are not where Flink looks, or cannot be looked into."""
    named = (restore.old.metadata_file, *(new for _, new in restore.old.rebase))
    places: dict[str, str] = {}
    unseen: list[str] = []
    for folder, directory in directories.items():
        place = folder
        if not directory.is_relative:
            rebased = next(rebase_path(folder, restore.old.rebase), None)
            if rebased is None and not may_open(folder, named):
                unseen.append(folder)
                continue
            if rebased is not None or _scheme(folder) != _scheme(restore.old.metadata_file):
                unseen.append(folder)
                place = rebased or ""
        if place:
            places[folder] = place
    return places, unseen


def _requests(directories: Mapping[str, _Directory], places: Mapping[str, str]) -> int:
    """Return about how many requests to object stores :func:`_look_in` sends."""
    counts = [len(directories[folder].needed) for folder, place in places.items() if not files.is_local(place)]
    return sum(n if n < _MANY else -(-n // _LISTED_AT_A_TIME) for n in counts)


def _some(directories: Mapping[str, _Directory], places: Mapping[str, str]) -> dict[str, _Directory]:
    """Return so few of the files that each is one request: the first, the one in the middle, and the last of the metadata."""
    count = sum(len(directories[folder].needed) for folder in places)
    wanted = {0, count // 2, count - 1}
    chosen: dict[str, _Directory] = {}
    before = 0
    for folder in places:
        whole = directories[folder]
        names = [n for i, n in enumerate(whole.needed, before) if i in wanted]
        before += len(whole.needed)
        if names:
            chosen[folder] = replace(whole, needed={n: whole.needed[n] for n in names}, whole=whole.whole & {*names})
    return chosen


def _look_in(restore: Restore, directories: Mapping[str, _Directory], places: Mapping[str, str]) -> _Looked:
    found = _Looked()
    for folder, directory in directories.items():
        place = places.get(folder)
        if place is None:
            continue
        try:
            absent, wrong = _look(place, directory)
        except (StorageError, MissingDependencyError):
            name = f"{folder}/{next(iter(directory.needed))}"
            if place != folder or not _found_elsewhere(restore, {name: folder}):
                raise
            found.unseen.append(folder)
            continue
        if absent and place == folder and not directory.is_relative:
            found.absolute[folder] = absent
        elif absent:
            found.missing[place] = absent
        if wrong:
            found.short[place] = wrong
    return found


def _scheme(uri: str) -> str:
    scheme = "" if files.is_local(uri) else uri.partition("://")[0]
    return "s3" if scheme in _S3 else scheme


def _found_elsewhere(restore: Restore, wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the places at which statetool finds files that are not where their handles say.

    ``wanted`` is the directory of each file that is looked for, by its path.
    """
    found: dict[str, str] = {}
    for handle in handles_of(restore.old.metadata) if wanted else ():
        for stream, _ in file_streams(handle):
            folder = wanted.get(stream.path)
            if folder is not None and folder not in found:
                with suppress(SnapshotNotFoundError):
                    place = restore.old.resolve(stream)
                    if place is not None:
                        found[folder] = files.parent(place.file)
    return found


def _report(
    restore: Restore,
    missing: Mapping[str, list[str]],
    short: Mapping[str, list[str]],
) -> Iterator[Result]:
    if missing or short:
        check_deletion(restore.old.metadata_file)
    names = {f"{folder}/{name}" for folder, of_folder in missing.items() for name in of_folder}
    claimed = claimed_files(restore.old.metadata, restore.old.metadata_file, names)
    if claimed is not None:
        yield refuses("M7", claimed.text, Remedy(claimed.cure, ("copy", A, NEW, *claimed.options)))
        missing = {
            folder: rest
            for folder, of_folder in missing.items()
            if (rest := [n for n in of_folder if f"{folder}/{n}" not in claimed.files])
        }
    if missing:
        count = sum(map(len, missing.values()))
        is_one = count == 1
        text = f"{several(count, 'file')} of the snapshot {'does' if is_one else 'do'} not exist ({_few(missing)}): tasks fail and restart without end."
        yield refuses("M6", text, _COPY)
    if short:
        count = sum(map(len, short.values()))
        text = f"{several(count, 'file')} of the snapshot {'has' if count == 1 else 'have'} another length than the snapshot says ({_few(short)}): tasks fail and restart without end."
        yield refuses("M6", text, _COPY)


def _moved(
    restore: Restore, directories: Mapping[str, _Directory], moved: Mapping[str, str], unseen: list[str]
) -> Iterator[Result]:
    if moved:
        old, new = next(iter(moved.items()))
        count = sum(len(directories[f].needed) for f in moved)
        text = f"The snapshot was moved: it names {several(count, 'file')} by absolute paths, in {old}, which are in {new} now. Flink does not look for them there."
        yield refuses("M8", text, Remedy("Write a copy whose paths are relative.", ("copy", A, NEW)))
    if unseen:
        text = (
            f"the files that the snapshot names in {', '.join(unseen[:_SHOWN])} exist there, where Flink looks for them"
        )
        yield Assumption(rule="M8", text=text, option="run check on the snapshot at its own place, without --rebase")
    home = files.parent(restore.old.metadata_file)
    absolute = [
        f for f, d in directories.items() if not d.is_relative and not d.are_logs and f not in moved and f not in unseen
    ]
    root = files.canonical(files.parent(home)).rstrip("/")
    if absolute and not moved and not any(_is_in(root, files.canonical(f)) for f in absolute):
        if any(_is_in(root, files.canonical(f), entropy=True) for f in absolute):
            text = f"the snapshot is that of a job with entropy in its paths, and not a copy of one in {absolute[0]}, which the restored job reads"
            yield Assumption(rule="M8", text=text, option="statetool copy")
            return
        text = f"The snapshot is located in {home}, and names its files in {absolute[0]}: the restored job reads them there, and depends on them."
        yield loses("M8", text, Remedy("Write a copy that has all of its files.", ("copy", A, NEW)))


def _is_in(root: str, folder: str, *, entropy: bool = False) -> bool:
    """Return True if a folder is in another one; with ``entropy``, if it is without one of its names (``s3.entropy.key``)."""
    if not entropy:
        return f"{folder}/".startswith(f"{root}/")
    names = folder.split("/")
    return any(_is_in(root, "/".join([*names[:i], *names[i + 1 :]])) for i in range(len(names)))


def _few(names: Mapping[str, list[str]]) -> str:
    shown = [f"{folder}/{name}" for folder, of_folder in names.items() for name in of_folder[:_SHOWN]][:_SHOWN]
    more = sum(map(len, names.values())) > len(shown)
    return ", ".join(shown) + (", ..." if more else "")


STEP: Final = Step(
    name="files",
    title="Files",
    follows="FileStateHandle, RelativeFileStateHandle, AbstractFsCheckpointStorageAccess",
    irrelevant=_irrelevant,
    checks=(_all_exist,),
)
