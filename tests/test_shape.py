"""Architecture of the package: the direction of imports, and the size of modules and functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import statetool
from tools.architecture import TOP, WINGS

ROOT: Final = Path(statetool.__file__).parent
TESTS: Final = Path(__file__).parent
#: Most packages below ``statetool``, and most modules in a package.
MOST_WINGS: Final = 24
MOST_MODULES: Final = 20
#: Packages in which each module is one connector.
ALPHABETS: Final = {"connectors/layouts"}
MOST_LINES: Final = 800
MOST_FUNCTION_LINES: Final = 60
#: Names of stored forms of keyed state.
FORM_NAMES: Final = re.compile(
    r"\b(Stored(Stream|Database|Log|Timers)|(Stream|Database|Log|Timer)Source|(Stream|Database|ChangeLog|RawTimer)Form)\b"
)
#: Methods that change containers.
CHANGES: Final = frozenset(
    (
        "add",
        "append",
        "clear",
        "discard",
        "extend",
        "insert",
        "move_to_end",
        "pop",
        "popitem",
        "remove",
        "setdefault",
        "update",
    )
)
#: State of a process that is not in an object of a caller, with its owner and reason.
PROCESS_STATE: Final[Mapping[str, str]] = {
    # What a program or user has said
    "java.declaring.classes.DECLARED": "statetool.declare owns it; snapshots take the classes when they are opened",
    "operations.cluster.clusters.CREDENTIALS": "statetool.set_credentials owns it; clients take them when they are made",
    "operations.cluster.deadlines.COMMAND": "one_deadline owns it, around a command",
    "cli.progress._COMMAND": "progress owns it, around a command",
    # Resources of the machine, shared by all snapshots
    "io.files.BYTES_READ": "counter of requested bytes",
    "io.glibc._may_keep": "claim_process owns it: whether the settings of malloc may be changed, as they belong to the whole process",
    "io.open_files._FILES": "keeping_open owns it: files that readers have open",
    "io.requests.REQUESTS": "limits of requests to servers, and responses up to a size and an age; a snapshot sees none from before its opening",
    "formats.rocksdb.database._OPEN": "up to two databases with open files",
    "formats.rocksdb.database._BEGUN": "parsed files of databases that are about to be opened, up to a number of files",
    "entries.key_indexes.INDEXES": "where entries of looked-up key groups begin, up to a size; a file that changed has another index",
    "java.classes.class_path._MAPPED": "jars in memory, as long as a class path uses them",
    "java.classes.class_path._INDEXES": "indexes of jars, as long as a class path uses them",
    "kernels.core.jit._namespaces": "one per module of kernels",
    "saving.streams.condition_rules._local": "a connection of DuckDB per thread",
    # What this process is doing
    "io.owner.RUNNING": "writes of this process, as long as their objects exist",
    "saving.publish._LEFT": "writes with an unknown outcome, which count as running until the process ends",
    "snapshot.parsed._HANDED_OVER": "handing_over owns it, in one thread",
    "snapshot.parsed._STAGED": "opening_staged owns it, in one thread",
    "serializers.table.SNAPSHOT_CLASSES": "classes of serializers and plugins that were met, by name",
}
FORM_MODULES: Final = {"entries.streams", "entries.database", "entries.change_log", "entries.raw_timers"}


@cache
def modules() -> dict[str, Path]:
    """Return the modules of the package by their names in it."""
    found = {}
    for file in sorted(ROOT.rglob("*.py")):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix("__init__").rstrip(".")
        found[name] = file
    return found


@cache
def imported(name: str) -> frozenset[str]:
    """Return the modules that a module imports, also inside functions, and for annotations only.

    Classes of the API name each other in annotations: there, an import of another module of the API for annotations is none.
    """
    found = set()
    tree = ast.parse(modules()[name].read_text())
    annotations = {id(node) for node in _imports_for_annotations(tree)} if room(name) == "api" else set()
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, f"{name} imports relatively"
            names = [f"{node.module}.{a.name}" for a in node.names]
        for full in names:
            if not full.startswith("statetool"):
                continue
            target = full.removeprefix("statetool").lstrip(".")
            while target not in modules():
                target = target.rpartition(".")[0]
            if target != name and not (id(node) in annotations and room(target) == "api"):
                found.add(target)
    return frozenset(found)


def _imports_for_annotations(tree: ast.Module) -> Iterator[ast.AST]:
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from ast.walk(node)


def room(name: str) -> str:
    head = "cli" if name == "__main__" else name.partition(".")[0]
    known = {wing.name for line in WINGS for wing in line}
    return head if head in known else TOP


def level(name: str) -> int:
    return next(i for i, line in enumerate(WINGS) if room(name) in {wing.name for wing in line})


def test_every_package_is_on_the_map() -> None:
    found = {name for name, file in modules().items() if file.name == "__init__.py" and name.count(".") <= 1 and name}
    wings = [wing for line in WINGS for wing in line]
    shown = {wing.name for wing in wings} | {f"{wing.name}.{part}" for wing in wings for part, _ in wing.parts}
    assert found == shown - {TOP, "errors"}
    assert len({name.partition(".")[0] for name in found}) <= MOST_WINGS


def test_packages_are_small() -> None:
    sizes = {f.parent: len(list(f.parent.glob("*.py"))) for f in modules().values()}
    large = {str(folder.relative_to(ROOT)) for folder, size in sizes.items() if size > MOST_MODULES}
    assert large == ALPHABETS


def test_the_files_of_rocksdb_are_a_room_with_a_door() -> None:
    """They know nothing of Flink, and could be a library."""
    inside = [n for n in modules() if n.startswith(("formats.rocksdb.", "kernels.rocksdb."))]
    doors = ("errors", "io.", "formats.rocksdb.", "formats.stream", "kernels.core.", "kernels.rocksdb.")
    assert not [f"{n} -> {t}" for n in inside for t in imported(n) if not f"{t}.".startswith(doors)]
    words = re.compile(r"flink|savepoint|key.?group|subtask|state backend|serializer", re.IGNORECASE)
    assert not [n for n in inside if words.search(modules()[n].read_text())]


def test_no_import_goes_up_or_sideways() -> None:
    wrong = [
        f"{name} -> {target}"
        for name in modules()
        for target in imported(name)
        if room(name) != room(target) and level(target) >= level(name)
    ]
    assert not wrong


def test_no_circle() -> None:
    assert not circles_of({name: imported(name) for name in modules()})


def circles_of(graph: Mapping[str, Collection[str]]) -> list[set[str]]:
    """Return the sets of modules that import each other, directly or through others (strongly connected components)."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found = []

    def visit(name: str) -> None:
        index[name] = lowest[name] = len(index)
        path.append(name)
        for target in graph[name]:
            if target not in index:
                visit(target)
            if target in path:
                lowest[name] = min(lowest[name], lowest[target])
        if lowest[name] == index[name]:
            members = set(path[path.index(name) :])
            del path[path.index(name) :]
            if len(members) > 1:
                found.append(members)

    for name in graph:
        if name not in index:
            visit(name)
    return found


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a", "f"}, "f": {"e"}}
    assert circles_of(graph) == [{"b", "c"}, {"e", "f"}]


def test_public_classes_inherit_from_the_api_only() -> None:
    for name in statetool.__all__:
        public = getattr(statetool, name)
        if isinstance(public, type) and public.__module__.startswith("statetool.api."):
            bases = {base.__module__ for base in public.__mro__ if base.__module__.startswith("statetool.")}
            assert all(base.startswith("statetool.api.") for base in bases), (name, bases)


def test_stored_forms_are_named_in_their_own_modules() -> None:
    """A new form is one module and a line in ``entries/forms.py``: nothing else depends on forms."""
    naming = [n for n, f in modules().items() if n not in FORM_MODULES and FORM_NAMES.search(f.read_text())]
    assert len(naming) <= 5, naming


def test_modules_can_be_held_in_mind() -> None:
    """Including modules of tests."""
    files = [*modules().values(), *TESTS.rglob("*.py")]
    long = {str(f): lines for f in files if (lines := f.read_text().count("\n")) > MOST_LINES}
    assert not long


def test_functions_can_be_held_in_mind() -> None:
    """Without their docstrings. Kernels have separate limits (``tests/kernels/test_shape.py``)."""
    long = {}
    for name, file in modules().items():
        if room(name) == "kernels":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
                lines = node.end_lineno - node.lineno + 1
                if ast.get_docstring(node) is not None:
                    described = node.body[0]
                    lines -= (described.end_lineno or 0) - described.lineno + 1
                if lines > MOST_FUNCTION_LINES:
                    long[f"{name}.{node.name}"] = lines
    assert not long


def test_state_of_the_process_has_an_owner() -> None:
    """Modules hold constants. What changes while a process runs is an object of :data:`PROCESS_STATE`, or a bounded cache."""
    trees = {name: ast.parse(file.read_text()) for name, file in modules().items()}
    assert {name for tree in trees.items() for name in changed_names(*tree)} == PROCESS_STATE.keys()
    assert not [f"{name}.{cached}" for name, tree in trees.items() for cached in unbounded_caches(tree)]


def changed_names(module: str, tree: ast.Module) -> Iterator[str]:
    """Yield the names of a module that its functions change, or that hold objects whose own methods change them."""
    named: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named |= {t.id: node.value for t in targets if isinstance(t, ast.Name)}
    stateful = {c.name for c in tree.body if isinstance(c, ast.ClassDef) and _changes_itself(c)}
    for name, value in named.items():
        # Weak and thread-local containers and variables of a context are made to be changed.
        made = ast.unparse(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
        if made in stateful or made in ("ContextVar", "local", "WeakValueDictionary", "WeakKeyDictionary", "WeakSet"):
            yield f"{module}.{name}"
    for function in (f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)):
        local = {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
        local |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for inner in ast.walk(function):
            if isinstance(inner, ast.Global):
                yield from (f"{module}.{name}" for name in inner.names)
            changed = _changed_by(inner)
            if changed in named and changed not in local:
                yield f"{module}.{changed}"


def _changed_by(node: ast.AST) -> str | None:
    """Return the name of a container that a call or an assignment changes."""
    held: ast.AST | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
        held = node.func.value
    if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
        held = node.value
    return held.id if isinstance(held, ast.Name) else None


def _changes_itself(cls: ast.ClassDef) -> bool:
    """Return True if a method other than those of construction assigns an attribute of ``self``, or changes a container in one."""
    methods = [m for m in cls.body if isinstance(m, ast.FunctionDef) and m.name not in ("__init__", "__post_init__")]
    for node in (node for method in methods for node in ast.walk(method)):
        match node:
            case ast.Attribute(value=held, ctx=ast.Store()) | ast.Subscript(value=held, ctx=ast.Store() | ast.Del()):
                pass
            case ast.Call(func=ast.Attribute(value=ast.Attribute() as held, attr=attr)) if attr in CHANGES:
                pass
            case _:
                continue
        if ast.unparse(held).partition(".")[0] == "self":
            return True
    return False


def unbounded_caches(tree: ast.Module) -> Iterator[str]:
    """Yield the functions with arguments whose cache has no limit."""
    for function in (f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)):
        decorators = {ast.unparse(d).replace("functools.", "") for d in function.decorator_list}
        if function.args.args and decorators & {"cache", "lru_cache(None)", "lru_cache(maxsize=None)"}:
            yield function.name


@pytest.mark.parametrize(
    "text",
    [
        "_x = {}\ndef f(a):\n    _x[a] = 1",
        "_x: list[int] = []\ndef f(a):\n    _x.append(a)",
        "_x = None\ndef f():\n    global _x\n    _x = 1",
        "class C:\n    def put(self):\n        self.a = 1\n_x = C()",
        "_x = threading.local()",
    ],
)
def test_state_of_a_module_is_found(text: str) -> None:
    assert set(changed_names("m", ast.parse(text))) == {"m._x"}
    assert not set(changed_names("m", ast.parse("_x = {}\ndef f(a):\n    _x = {}\n    _x[a] = _y")))
    assert list(unbounded_caches(ast.parse("@cache\ndef f(a): ...\n@cache\ndef g(): ..."))) == ["f"]


def test_counts_have_the_right_plural() -> None:
    """Counts printed by commands and reports come from ``several``, which distinguishes "1 difference" from "2 differences"."""
    nouns = "checkpoint|difference|element|entrie|error|file|key|operator|piece|row|snapshot|split|state|subtask|thing|value|warning"
    count = re.compile(rf"\{{(?!_?[A-Z])[^{{}}]*\}} ({nouns})s\b")
    found = [
        f"{name}: {match.group()}"
        for name, file in modules().items()
        if room(name) in ("cli", "reporting", "operations", "analysis")
        for match in count.finditer(file.read_text())
    ]
    assert not found
