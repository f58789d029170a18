"""Classes of jars, folders and class files, found by name and by superclass without reading all of them.

A jar may contain jars (``BOOT-INF/lib``, ``lib/``) and several releases of a class (``META-INF/versions``). Its index is built once and kept in
the user's cache folder. The key of the cache is the hash of the jar's directory, which has the checksum of every class.

Jars are not trusted: sizes, number and nesting of entries are bounded, and every class is checked against its checksum when it is read.
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

from statetool.errors import FormatError, SnapshotNotFoundError, UnsupportedError
from statetool.io import files
from statetool.io.cache import cache_folders, keep_newest, writable
from statetool.java.classes.class_file import CONSTANT_BYTES, MAGIC, ClassFile, parse_class

DEFAULT_RELEASE: Final = 21
_MAX_CLASS_BYTES: Final = 16 << 20
_MAX_JAR_BYTES: Final = 512 << 20
_MAX_TOTAL_BYTES: Final = 2 << 30
_MAX_ENTRIES: Final = 1_000_000
_MAX_DEPTH: Final = 4
_STORED: Final = 0
_DEFLATED: Final = 8
_ENCRYPTED: Final = 1
_LOCAL_HEADER: Final = struct.Struct("<4s22xHH")
_END: Final = b"PK\5\6"
_END_BYTES: Final = 22
_MAX_COMMENT: Final = 0xFFFF
_VERSIONS: Final = "META-INF/versions/"
ARCHIVES: Final = (".jar", ".war", ".zip")
#: Part of the key of cached indexes.
_INDEX_FORM: Final = "11"
#: Part of the names of methods that register serializers.
_REGISTERS: Final = b"KryoSerializer"
#: Parts of the names of classes with which a job declares its operators, keys, states, timers, windows, patterns and types.
_DECLARES: Final = (
    b"StateDescriptor", b"/streaming/api/windowing/", b"/streaming/api/datastream/", b"org/apache/flink/cep/", b"TimerService",
    b"/api/common/typeinfo/", b"/api/java/typeutils/",
)  # fmt: skip
#: No name of a class has it.
_SEPARATOR: Final = ";"
_MOST_CACHED: Final = 50
#: Maximum number of parsed classes in memory.
_MOST_PARSED: Final = 1000
Buffer: TypeAlias = "bytes | memoryview | mmap.mmap"
#: Mapped jars that are in use, by device, inode, size and time. Snapshots whose jars they are may wait long for Python's garbage collector.
_MAPPED: Final[WeakValueDictionary[tuple[int, ...], mmap.mmap]] = WeakValueDictionary()


@dataclass(frozen=True, slots=True)
class _Entry:
    """A member of an archive: its name, and where and how it is stored."""

    archive: int
    name: str
    offset: int
    stored: int
    size: int
    method: int
    checksum: int


@dataclass
class _Index:
    """Classes of one file, as columns, which load fast. Not changed after it is built, since class paths share it."""

    names: list[str] = field(default_factory=list)
    #: Superclass and interfaces of each class, separated by ``;``.
    parents: list[str] = field(default_factory=list)
    entries: list[list[Any]] = field(default_factory=list)
    #: Nested archives. Archive 0 is the file.
    archives: list[list[Any]] = field(default_factory=list)
    #: Classes that may register serializers with Kryo.
    registering: list[str] = field(default_factory=list)
    #: Classes that may declare operators, keys, states, timers, windows, patterns or types.
    declaring: list[str] = field(default_factory=list)

    def entry(self, row: int) -> _Entry:
        return _Entry(*(column[row] for column in self.entries))


class _Jar:
    """A jar and its index."""

    def __init__(self, path: str, release: int) -> None:
        self.path = path
        self._data = _open_buffer(path)
        self._nested: dict[int, Buffer] = {}
        self.index = _shared_index(self, release)

    @property
    def data(self) -> Buffer:
        return self._data

    def label(self, entry: _Entry) -> str:
        """Return the name of an entry for errors: ``job.jar!lib/a.jar!com/acme/Order.class``."""
        parts = [entry.name]
        archive = entry.archive
        while archive:
            outer = _Entry(*self.index.archives[archive - 1])
            parts.append(outer.name)
            archive = outer.archive
        return "!".join((self.path, *reversed(parts)))

    def archive_data(self, archive: int) -> Buffer:
        """Return the bytes of a nested archive."""
        if not archive:
            return self._data
        if archive not in self._nested:
            entry = _Entry(*self.index.archives[archive - 1])
            self._nested[archive] = _extract(self.archive_data(entry.archive), entry, self.path, _MAX_JAR_BYTES)
        return self._nested[archive]

    def read(self, row: int) -> tuple[bytes, str]:
        """Return the bytes of a class, and its name for errors."""
        entry = self.index.entry(row)
        label = self.label(entry)
        data = bytes(_extract(self.archive_data(entry.archive), entry, label, _MAX_CLASS_BYTES))
        if zlib.crc32(data) != entry.checksum:
            raise FormatError("the class does not match its checksum").at(file=label)
        return data, label


class ClassPath:
    """Classes in jars, folders and class files. The first one of a name counts, as in Java.

    Parameters
    ----------
    paths
        Jars, folders of classes and jars, or class files: local paths, or jars by any URI that fsspec can open.
    release
        Java release that chooses among the versions of a class in a multi-release jar.

    Raises
    ------
    SnapshotNotFoundError
        A path does not exist.
    FormatError, UnsupportedError
        A jar or class is damaged, or larger than any sound one. The error names it.
    """

    def __init__(self, paths: Iterable[str | os.PathLike[str]], *, release: int = DEFAULT_RELEASE) -> None:
        self.paths = tuple(os.fspath(path) for path in paths)
        self._at: dict[str, tuple[_Jar, int] | str] = {}
        self._parents: dict[str, str] = {}
        self._children: dict[str, list[str]] | None = None
        self._parsed: dict[str, ClassFile] = {}
        #: Classes that may register serializers with Kryo.
        self.registering: list[str] = []
        #: Classes that may declare operators, keys, states, timers, windows, patterns or types.
        self.declaring: list[str] = []
        for path in self.paths:
            for file in files_of(path):
                if file.endswith(".class"):
                    self._add_class(file)
                else:
                    self._add_jar(_Jar(file, release))

    def _add_class(self, file: str) -> None:
        data = _read_class_file(file)
        cls = parse_class(data, file)
        if cls.name not in self._at:
            self.registering += [cls.name] if _REGISTERS in data else []
            self.declaring += [cls.name] if any(part in data for part in _DECLARES) else []
            self._at[cls.name] = file
            self._parents[cls.name] = _SEPARATOR.join(filter(None, (cls.superclass, *cls.interfaces)))

    def _add_jar(self, jar: _Jar) -> None:
        index = jar.index
        added = {name: (jar, row) for row, name in enumerate(index.names)}
        parents = dict(zip(index.names, index.parents, strict=True))
        self.registering += [name for name in index.registering if name not in self._at]
        self.declaring += [name for name in index.declaring if name not in self._at]
        self._at = {**added, **self._at}
        self._parents = {**parents, **self._parents}

    def checksums(self) -> dict[str, int]:
        """Return the checksum of each class, as its jar has it."""
        return {
            name: zlib.crc32(_read_class_file(at)) if isinstance(at, str) else at[0].index.entry(at[1]).checksum
            for name, at in self._at.items()
        }

    @cached_property
    def fingerprint(self) -> str:
        """A text that is the same only for the same classes."""
        return hashlib.sha256(repr(sorted(self.checksums().items())).encode()).hexdigest()

    def __contains__(self, name: str) -> bool:
        return name in self._at

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._at))

    def __len__(self) -> int:
        return len(self._at)

    def read(self, name: str) -> ClassFile | None:
        """Parse a class, ``None`` if there is no class of this name.

        Raises
        ------
        FormatError
            The class is damaged.
        """
        if name in self._parsed:
            return self._parsed[name]
        if name not in self._at:
            return None
        data, file = self._read(name)
        cls = parse_class(data, file)
        if cls.name != name:
            raise FormatError(f"expected class {name}, found {cls.name}").at(file=file)
        if len(self._parsed) >= _MOST_PARSED:
            self._parsed.clear()
        self._parsed[name] = cls
        return cls

    def _read(self, name: str) -> tuple[bytes, str]:
        """Return the bytes of a class, and its file."""
        place = self._at[name]
        return (_read_class_file(place), place) if isinstance(place, str) else place[0].read(place[1])

    def read_bytes(self, name: str) -> bytes | None:
        """Return the bytes of a class, ``None`` if there is no class of this name."""
        return self._read(name)[0] if name in self._at else None

    def file_of(self, name: str) -> str:
        """Return the name of a class's file, for messages."""
        place = self._at[name]
        return place if isinstance(place, str) else place[0].label(place[0].index.entry(place[1]))

    def supertypes(self, name: str) -> list[str]:
        """Return the superclasses and interfaces of a class, nearest first, as far as the classes are known."""
        found: dict[str, None] = {}
        level = _names_in(self._parents.get(name, ""))
        while level:
            new = [parent for parent in level if parent not in found and parent != name]
            found |= dict.fromkeys(new)
            level = [above for parent in new for above in _names_in(self._parents.get(parent, ""))]
        return list(found)

    def extending(self, prefix: str) -> list[str]:
        """Return the classes that extend or implement a class of a package themselves."""
        return sorted(
            n for n, parents in self._parents.items() if any(p.startswith(prefix) for p in _names_in(parents))
        )

    @cached_property
    def homonyms(self) -> frozenset[str]:
        """The names without packages that several classes have."""
        counts = Counter(name.rpartition(".")[2] for name in self._at)
        return frozenset(name for name, count in counts.items() if count > 1)

    def subclasses(self, name: str) -> list[str]:
        """Return all direct and indirect subclasses of a class, or implementations of an interface."""
        if self._children is None:
            self._children = {}
            for child, parents in self._parents.items():
                for parent in _names_in(parents):
                    self._children.setdefault(parent, []).append(child)
        found: dict[str, None] = {}
        level = [name]
        while level:
            level = [c for parent in level for c in self._children.get(parent, ()) if c not in found and c != name]
            found |= dict.fromkeys(level)
        return sorted(found)


def _names_in(joined: str) -> list[str]:
    return joined.split(_SEPARATOR) if joined else []


def files_of(path: str) -> list[str]:
    """Return the jars and class files of a folder, or the file itself."""
    local = files.local_path(path) if files.is_local(path) else ""
    if not local or not os.path.isdir(local):
        return [path]
    found = []
    for folder, inner, names in os.walk(local):
        inner.sort()
        found += [os.path.join(folder, n) for n in sorted(names) if n.endswith((".class", *ARCHIVES))]
        if len(found) > _MAX_ENTRIES:
            raise UnsupportedError(f"{path} has more than {_MAX_ENTRIES} classes", hint="pass the job's jar")
    return [f for f in found if not _is_no_class(f)]


def _is_no_class(name: str) -> bool:
    return name.endswith(("module-info.class", "package-info.class"))


def _read_class_file(file: str) -> bytes:
    data = files.read_whole(file)
    if len(data) > _MAX_CLASS_BYTES:
        raise UnsupportedError(f"{file} is larger than {_MAX_CLASS_BYTES >> 20} MiB")
    return data


def _open_buffer(path: str) -> Buffer:
    if not files.is_local(path):
        return files.read_whole(path)
    with files.reading(path):
        if not os.path.exists(files.local_path(path)):
            raise SnapshotNotFoundError(f"{path} does not exist", hint="pass --jar the job's jar, a folder or a class")
        with open(files.local_path(path), "rb") as stream:
            return _map(stream.fileno())


def _map(file: int) -> Buffer:
    """Map an open file. Each map keeps a file open, so a file that is mapped already is not mapped again."""
    status = os.fstat(file)
    if not status.st_size:
        return b""
    key = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    found = _MAPPED.get(key)
    if found is None:
        found = _MAPPED[key] = mmap.mmap(file, 0, access=mmap.ACCESS_READ)
    return found


def _extract(data: Buffer, entry: _Entry, label: str, most: int) -> Buffer:
    """Return the bytes of an entry."""
    if entry.size > most:
        raise UnsupportedError(
            f"{label} is larger than {most >> 20} MiB", hint="pass --jar only the jar with the job's classes"
        )
    start = entry.offset + _LOCAL_HEADER.size
    if entry.offset < 0 or start > len(data):
        raise FormatError("an entry is not inside its jar").at(file=label, offset=entry.offset)
    magic, name_bytes, extra_bytes = _LOCAL_HEADER.unpack_from(data, entry.offset)
    start += name_bytes + extra_bytes
    if magic != b"PK\3\4" or start + entry.stored > len(data):
        raise FormatError("an entry is not inside its jar").at(file=label, offset=entry.offset)
    stored = memoryview(data)[start : start + entry.stored]
    if entry.method == _STORED:
        if entry.stored != entry.size:
            raise FormatError(f"{entry.stored} bytes are stored for {entry.size}").at(file=label, offset=start)
        return stored
    if entry.method != _DEFLATED:
        raise UnsupportedError(f"{label} is compressed by method {entry.method}", hint="make the jar with deflate")
    inflating = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        # One byte more than declared shows an entry that is larger than declared.
        inflated = inflating.decompress(stored, entry.size + 1)
    except zlib.error as error:
        raise FormatError(f"damaged compressed data: {error}").at(file=label, offset=start) from error
    if len(inflated) != entry.size:
        raise FormatError(f"the entry does not have the {entry.size} bytes that the jar declares").at(
            file=label, offset=start
        )
    return inflated


class _Indexer:
    """Builder of the index of one jar."""

    def __init__(self, jar: _Jar, release: int) -> None:
        self._path = jar.path
        self._release = release
        self._total = 0
        self._count = 0
        self._archives: list[_Entry] = []
        self._found: dict[str, tuple[int, str, _Entry]] = {}
        self._registering: set[str] = set()
        self._declaring: set[str] = set()

    def build(self, data: Buffer) -> _Index:
        self._add(data, 0, self._path, 0)
        index = _Index(
            archives=[list(_columns(e)) for e in self._archives],
            registering=sorted(self._registering),
            declaring=sorted(self._declaring),
        )
        index.names = list(self._found)
        index.parents = [parents for _, parents, _ in self._found.values()]
        rows = [_columns(entry) for _, _, entry in self._found.values()]
        index.entries = [list(column) for column in zip(*rows, strict=True)]
        return index

    def _add(self, data: Buffer, archive: int, label: str, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise UnsupportedError(f"{label}: jars are nested deeper than {_MAX_DEPTH}", hint="unpack the jar first")
        nested = []
        entries, is_multi_release = _directory(data, archive, label)
        self._count += len(entries)
        if self._count > _MAX_ENTRIES:
            raise UnsupportedError(f"{label} has more than {_MAX_ENTRIES} entries")
        for entry in entries:
            version = self._version(entry.name, is_multi_release)
            if version is None:
                continue
            if entry.name.endswith(".class"):
                self._add_class(data, entry, version, f"{label}!{entry.name}")
            else:
                nested.append(entry)
        for entry in nested:
            inner_label = f"{label}!{entry.name}"
            inner = self._extract(data, entry, inner_label, _MAX_JAR_BYTES)
            if bytes(inner[:2]) == b"PK":
                self._archives.append(entry)
                self._add(inner, len(self._archives), inner_label, depth + 1)

    def _version(self, name: str, is_multi_release: bool) -> int | None:
        """Return the Java release of an entry, 0 for all releases, ``None`` if it is left out."""
        if not name.endswith((".class", *ARCHIVES)) or _is_no_class(name):
            return None
        if not name.startswith("META-INF/"):
            return 0
        number = name.removeprefix(_VERSIONS).partition("/")[0]
        if not name.startswith(_VERSIONS) or not number.isascii() or not number.isdigit() or len(number) > 4:
            return 0 if name.endswith(ARCHIVES) else None
        return int(number) if is_multi_release and int(number) <= self._release else None

    def _extract(self, data: Buffer, entry: _Entry, label: str, most: int) -> Buffer:
        self._total += entry.size
        if self._total > _MAX_TOTAL_BYTES:
            raise UnsupportedError(
                f"{self._path} has more than {_MAX_TOTAL_BYTES >> 30} GiB of classes",
                hint="pass --jar only the jar with the job's classes",
            )
        return _extract(data, entry, label, most)

    def _add_class(self, data: Buffer, entry: _Entry, version: int, label: str) -> None:
        raw = bytes(self._extract(data, entry, label, _MAX_CLASS_BYTES))
        head = _read_head(raw, label)
        known = self._found.get(head[0])
        # In one archive a later release of a class wins; otherwise the first class of a name wins.
        if known is None or (known[2].archive == entry.archive and version > known[0]):
            self._found[head[0]] = version, _SEPARATOR.join(head[1:]), entry
            if _REGISTERS in raw:
                self._registering.add(head[0])
            if any(part in raw for part in _DECLARES):
                self._declaring.add(head[0])


def _columns(entry: _Entry) -> tuple[Any, ...]:
    return entry.archive, entry.name, entry.offset, entry.stored, entry.size, entry.method, entry.checksum


def _directory(data: Buffer, archive: int, label: str) -> tuple[list[_Entry], bool]:
    """Return the classes and archives in an archive, and whether it is a multi-release jar."""
    try:
        with zipfile.ZipFile(io.BytesIO(data) if isinstance(data, bytes) else _Stream(data)) as opened:
            members = [m for m in opened.infolist() if m.filename.endswith((".class", *ARCHIVES))]
            entries = [
                _Entry(archive, m.filename, m.header_offset, m.compress_size, m.file_size, m.compress_type, m.CRC)
                for m in members
            ]
            encrypted = next((m.filename for m in members if m.flag_bits & _ENCRYPTED), None)
            manifest = opened.NameToInfo.get("META-INF/MANIFEST.MF")
            is_multi_release = False
            if manifest is not None and manifest.file_size <= _MAX_CLASS_BYTES:
                with opened.open(manifest) as stream:
                    is_multi_release = b"multi-release: true" in stream.read(_MAX_CLASS_BYTES).lower()
    except FormatError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError, ValueError) as error:
        raise FormatError(f"not a valid jar: {error}").at(file=label) from error
    except (struct.error, IndexError, OverflowError) as error:
        raise FormatError("not a valid jar: its directory is damaged").at(file=label) from error
    if encrypted is not None:
        raise UnsupportedError(f"{label}!{encrypted} is encrypted")
    return entries, is_multi_release


class _Stream(io.RawIOBase):
    """A buffer as a file, without a copy."""

    def __init__(self, data: Buffer) -> None:
        super().__init__()
        self._data = memoryview(data)
        self._pos = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._pos, os.SEEK_END: len(self._data)}[whence]
        if base + offset < 0:
            raise ValueError("position before the start")
        self._pos = base + offset
        return self._pos

    def tell(self) -> int:
        return self._pos

    def readinto(self, target: Any) -> int:
        part = self._data[self._pos : self._pos + len(target)]
        target[: len(part)] = part
        self._pos += len(part)
        return len(part)


def _read_head(data: bytes, label: str) -> tuple[str, ...]:
    """Return the names of a class, its superclass and its interfaces.

    Reads the constants without the checks of :func:`parse_class`, which reports the damage if one is missing.
    """
    try:
        if data[:4] != MAGIC:
            raise ValueError
        count = data[8] << 8 | data[9]
        at = [0] * count
        pos, index = 10, 1
        while index < count:
            at[index] = pos
            tag = data[pos]
            if tag == 1:
                pos += 3 + (data[pos + 1] << 8 | data[pos + 2])
                index += 1
            else:
                pos += 1 + CONSTANT_BYTES[tag]
                index += 2 if tag in (5, 6) else 1
        references = struct.unpack_from(f">{3 + (data[pos + 6] << 8 | data[pos + 7])}H", data, pos + 2)
        # Only the superclass may be missing. The third number is that of interfaces.
        classes = [r for i, r in enumerate(references) if i != 2 and (r or i != 1)]
        names = []
        for reference in classes:
            start = at[reference]
            text = at[data[start + 1] << 8 | data[start + 2]]
            size = data[text + 1] << 8 | data[text + 2]
            if data[start] != 7 or data[text] != 1 or text + 3 + size > len(data):
                raise ValueError
            names.append(data[text + 3 : text + 3 + size].decode("ascii").replace("/", "."))
        if not all(names) or any(_SEPARATOR in name for name in names):
            raise ValueError
        return tuple(names)
    except (IndexError, KeyError, ValueError, struct.error):
        cls = parse_class(data, label)
        return tuple(filter(None, (cls.name, cls.superclass, *cls.interfaces)))


#: Indexes in use, by content: one command opens the jars of a job several times.
_INDEXES: Final[WeakValueDictionary[str, _Index]] = WeakValueDictionary()


def _shared_index(jar: _Jar, release: int) -> _Index:
    key = _content_key(jar.data, release)
    found = _INDEXES.get(key)
    if found is None:
        found = _INDEXES[key] = _cached_index(jar, release, f"{key}.json")
    return found


def _cached_index(jar: _Jar, release: int, name: str) -> _Index:
    data = jar.data
    folders = [folder for folder in cache_folders("classes") if writable(folder)]
    for folder in folders:
        try:
            return _Index(*json.loads((folder / name).read_bytes()))
        except (OSError, ValueError, TypeError):
            continue
    index = _Indexer(jar, release).build(data)
    if folders:
        text = json.dumps(
            [index.names, index.parents, index.entries, index.archives, index.registering, index.declaring]
        )
        keep_newest(folders[0], name, text, most=_MOST_CACHED)
    return index


def _content_key(data: Buffer, release: int) -> str:
    """Return the hash of a jar's directory, which has the name, size and checksum of each entry."""
    tail = max(0, len(data) - _END_BYTES - _MAX_COMMENT)
    end = data.rfind(_END, tail) if not isinstance(data, memoryview) else -1
    start = 0
    if end >= 0 and end + _END_BYTES <= len(data):
        size = int.from_bytes(data[end + 12 : end + 16], "little")
        start = max(0, end - size)
    digest = hashlib.sha256(f"{_INDEX_FORM} {release} {len(data)} ".encode())
    digest.update(memoryview(data)[start:])
    return digest.hexdigest()
