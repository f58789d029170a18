"""Options of the data sources, parsed in the processes that Spark starts.

Needs no Spark. The request is a :class:`statetool.tables.request.ScanRequest` as text. The other options are read here: the location of the
snapshot, the user's declarations of types and names, and the operator.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from statetool.errors import OptionError
from statetool.java.classes.jar_classes import JarClasses
from statetool.java.declaring.classes import python_types, read_declarations
from statetool.operations.cluster.clusters import using_clusters
from statetool.operations.cluster.paths import resolve_directory, resolve_path
from statetool.operations.directories.following import FOLLOW_OPTIONS
from statetool.serializers.core.base import Serializer
from statetool.snapshot.inventory import Inventory
from statetool.snapshot.operator import OperatorInventory
from statetool.spark.source.guard import DEFAULT_ROW_BYTES
from statetool.tables.keys.text import Key
from statetool.tables.option_text import by_known_names, parse_flag, parse_names, parse_object
from statetool.tables.request import REQUEST_OPTIONS, ScanRequest
from statetool.types.declared import TypeContext
from statetool.types.json_text import parse_json
from statetool.types.options import whole_number

#: A worker is a child of a daemon, which is a child of the JVM, perhaps through a wrapper.
_MOST_PARENTS: Final = 4
_SNAPSHOT: Final = (
    "path",
    "clusters",
    "rebase",
    "uids",
    "declarations",
    "jars",
    "kryo",
    "python",
    "unsafePickle",
    "columnsFromPlan",
)
#: Options whose value is a path, which may be relative.
_PATHS: Final = ("path", "columnsFromPlan")
_OPERATOR: Final = ("operatorUid", "operatorId")
#: Options that Spark adds to those of ``CREATE TABLE``.
_TABLE_OPTIONS: Final = frozenset({"provider", "owner"})
#: Options of ``flink-state`` and ``flink-state-metadata``.
STATE_OPTIONS: Final = (*_SNAPSHOT, *_OPERATOR, *REQUEST_OPTIONS, "prune", "rowBytes")
METADATA_OPTIONS: Final = (*_SNAPSHOT, "table")


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotOptions:
    """Location of a snapshot, and the user's declarations of names and types."""

    path: str
    rebase: tuple[tuple[str, str], ...]
    uids: tuple[str, ...]
    types: TypeContext
    columns_from_plan: str | None

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> SnapshotOptions:
        """Read the options among ``texts`` that concern the snapshot.

        Raises
        ------
        OptionError
            The path is missing, or a text is not valid for its option.
        """
        path = texts.get("path")
        if not path:
            raise OptionError("no path was given", hint='pass the path of the snapshot to .load("...")')
        moved = parse_object("rebase", texts.get("rebase", "{}"))
        uids = parse_names("uids", texts.get("uids", ""))
        plan = texts.get("columnsFromPlan") or None
        return cls(path=path, rebase=tuple(moved.items()), uids=uids, types=_types(texts), columns_from_plan=plan)

    def open(self) -> Inventory:
        """Read the snapshot's metadata."""
        inventory = Inventory(
            self.path,
            rebase=self.rebase,
            uids=self.uids,
            types=self.types,
            columns_from_plan=self.columns_from_plan,
        )
        source = self.types.source
        return inventory.with_uids_in(source.paths) if isinstance(source, JarClasses) else inventory


def resolve_job(options: MutableMapping[str, str]) -> MutableMapping[str, str]:
    """Return options whose path is a snapshot if it was the URL of a job, or the directory of its checkpoints if an option follows them.

    Relative paths are those of the folder in which Spark was started: ``spark-sql`` gives its Python processes folders of their own.

    Called once per read, on the driver: schema, plan and tasks then use the same checkpoint.
    """
    for name in _PATHS:
        if name in options:
            options[name] = _absolute(options[name])
    path = options.get("path")
    if not path or "://" not in path:
        return options
    moved = parse_object("rebase", options.get("rebase", "{}"))
    follows = {name.lower() for name in options} & {name.lower() for name in FOLLOW_OPTIONS}
    with using_clusters(options.get("clusters") or None):
        options["path"] = (resolve_directory if follows else resolve_path)(path, tuple(moved.items()))
    return options


def _absolute(path: str) -> str:
    if not path or "://" in path or os.path.isabs(path) or os.path.exists(path):
        return path
    folder = jvm_folder()
    return path if folder is None else os.path.join(folder, path)


def normalize_options(options: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
    """Return options by their names in ``known``.

    Raises
    ------
    OptionError
        An unknown option, or a table created with options, which Spark (4.3) does not pass on when the table is read.
    """
    if {name.lower() for name in options} >= _TABLE_OPTIONS:
        raise OptionError(
            "Spark does not pass the options of a table to a Python source",
            hint="make a view: CREATE TEMPORARY VIEW name USING `flink-state` OPTIONS (path '...', operatorUid '...')",
        )
    return by_known_names(options, known)


def _types(texts: Mapping[str, str]) -> TypeContext:
    kryo = texts.get("kryo")
    if kryo not in (None, "2", "5"):
        raise OptionError(f"kryo={kryo!r} is neither 2 (Flink 1.x) nor 5 (Flink 2.x)")
    text = texts.get("declarations", "")
    as_json = text.lstrip().startswith("[")
    declarations = parse_json("declarations", text) if as_json else parse_names("declarations", text)
    jars = parse_names("jars", texts.get("jars", ""))
    return TypeContext(
        kryo=None if kryo is None else 2 if kryo == "2" else 5,
        classes=read_declarations(declarations),
        python=python_types(parse_object("python", texts.get("python", "{}"))),
        unsafe_pickle=parse_flag("unsafePickle", texts.get("unsafePickle", "false")),
        source=JarClasses(jars).open() if jars else None,
    )


def _number(name: str, text: str) -> int:
    try:
        return whole_number(name, int(text), least=1)
    except ValueError as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError(f"{name}={text!r} is not a number of bytes") from None


class SourceOptions:
    """Options of ``flink-state``, checked before a file is opened; Spark passes them in any case.

    Attributes
    ----------
    request
        The request.
    prune
        Whether filters on ``key`` may leave out key groups.
    row_bytes
        Maximum row size that a task passes to its JVM, in Arrow bytes.

    Raises
    ------
    OptionError
        An unknown option (the error names similar ones), or conflicting options.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        texts = normalize_options(options, STATE_OPTIONS)
        self._snapshot = SnapshotOptions.parse(texts)
        self._operators = tuple(texts[o] for o in _OPERATOR if texts.get(o))
        self.request = ScanRequest.from_options({n: t for n, t in texts.items() if n in REQUEST_OPTIONS})
        self.prune = parse_flag("prune", texts.get("prune", "false"))
        self.row_bytes = _number("rowBytes", texts.get("rowBytes", str(DEFAULT_ROW_BYTES)))

    def __getstate__(self) -> dict[str, Any]:
        return {n: v for n, v in self.__dict__.items() if n != "operator"}  # which tasks do not need

    @cached_property
    def operator(self) -> OperatorInventory:
        """The operator; if it is given by both uid and id, the two must agree."""
        inventory = self._snapshot.open()
        if not self._operators:
            raise OptionError(
                "neither operatorUid nor operatorId was given",
                hint=f"choose one of {', '.join(list(inventory.operators)[:10])}",
            )
        first, *others = (inventory.operator(name) for name in self._operators)
        if any(other is not first for other in others):
            uid, hex_id = self._operators
            raise OptionError(f"operatorUid {uid!r} and operatorId {hex_id!r} are not the same operator")
        return first

    @property
    def key_serializer(self) -> Serializer | None:
        """Serializer of the column ``key``; ``None`` for operator state, whose ``key`` is unrelated to key groups."""
        from statetool.tables.scan import column_names, table_states

        operator = self.operator
        if operator.state_tables.get(self.request.table, ("keyed", ""))[0] == "operator":
            return None
        return table_states(operator, column_names(operator, self.request.options.columns)).key

    def request_for(self, keys: Sequence[Key] | None) -> ScanRequest:
        """Return the request, limited to ``keys`` if they are known."""
        return self.request if keys is None else self.request.with_keys(keys)


def jvm_folder() -> str | None:
    """Return the working directory of the JVM, ``None`` if the system does not tell (only Linux does) or there is none."""
    process = os.getppid()
    for _ in range(_MOST_PARENTS):
        files = Path("/proc") / str(process)
        try:
            if (files / "comm").read_text().strip() == "java":
                return os.readlink(files / "cwd")
            process = int((files / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return None
    return None
