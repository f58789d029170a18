"""Classes that a job has: those of its jars, and those that Flink and Java provide."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from statetool.types.declared import ClassSource, TypeContext

#: Packages of classes that no job's jar has to contain.
_PROVIDED: Final = ("java.", "javax.", "scala.", "com.esotericsoftware.kryo.", "com.twitter.chill.", "org.apache.avro.")
_FLINK: Final = "org.apache.flink."
#: Packages of the jars in Flink's ``lib`` folder, Flink 1.13 to 2.3.
_PACKAGES: Final = frozenset({
    "annotation", "api", "calcite", "cep", "changelog", "client", "configuration", "container", "contrib", "core", "datastream",
    "events", "kubernetes", "legacy", "management", "mesos", "metrics", "optimizer", "queryablestate", "runtime", "shaded", "sql",
    "state", "streaming", "table", "traces", "types", "util", "yarn",
})  # fmt: skip
#: Packages of which ``lib`` only has these parts. All other connectors and formats are in the job's jar.
_PARTS: Final[Mapping[str, frozenset[str]]] = {
    "connector": frozenset({"base", "blackhole", "datagen", "file", "print"}),
    "formats": frozenset({"common", "csv", "json", "raw"}),
}
_CONNECTORS: Final = "streaming.connectors."


def is_provided(name: str) -> bool:
    """Return True if a class, or the class of the elements of an array, does not have to be in the job's jar."""
    name = element_class(name)
    if name.startswith(_FLINK):
        return _is_in_lib(name.removeprefix(_FLINK))
    return len(name) < 2 or name.startswith(_PROVIDED)


def _is_in_lib(name: str) -> bool:
    """Return True if Flink's ``lib`` folder has the package of a class. The name begins after ``org.apache.flink.``."""
    package, _, rest = name.partition(".")
    if not rest:
        return True  # a class of the package itself
    if package in _PARTS:
        return rest.partition(".")[0] in _PARTS[package]
    return package in _PACKAGES and not name.startswith(_CONNECTORS)


def jars_of(source: ClassSource | None) -> tuple[str, ...]:
    """Return the jars that a source of classes reads."""
    from statetool.java.classes.jar_classes import JarClasses  # most checks need no class files

    return source.paths if isinstance(source, JarClasses) else ()


def has_class(types: TypeContext, name: str) -> bool:
    """Return True unless the jar of a job is known and does not have a class."""
    name = element_class(name)
    return (
        is_provided(name)
        or types.source is None
        or types.source.has(name)
        or any(c.name == name for c in types.classes)
    )


def element_class(name: str) -> str:
    """Return the class of the innermost elements of an array, by ``Class.getName()``; other names are returned unchanged."""
    inner = name.lstrip("[")
    return inner[1:-1] if inner != name and inner.endswith(";") else inner


def ids_in_jars(paths: Iterable[str], operator_ids: Collection[str]) -> set[str]:
    """Return those of some operator ids whose uid is a text in jars."""
    from statetool.formats.operator_id import operator_id_for_uid
    from statetool.snapshot.uid_search import uids_in

    return {operator_id_for_uid(uid) for path in paths for uid in uids_in(path, tuple(operator_ids))}


def strings_in_jars(paths: Iterable[str], texts: Collection[str]) -> set[str]:
    """Return those of some texts that are in jars. The search finds a text by its hash as a uid."""
    from statetool.formats.operator_id import operator_id_for_uid

    wanted = {operator_id_for_uid(text): text for text in texts}
    return {wanted[found] for found in ids_in_jars(paths, wanted)}
