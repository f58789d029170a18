"""Savepoints of a job with JSON trees of Jackson and DataSQRL, and the memory of Flink Agents (``trees/harness``).

``python -m tests.support.flink.tree_job`` packs a savepoint per release with the values that the job saw.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.corpora.archives import HERE
from tests.support.flink.machine import FlinkMachine
from tools.maven import maven_jars

PACKED: Final = HERE / "corpus" / "trees.tar.xz"
#: The backend of each release, and the format of its savepoint.
RELEASES: Final = {"1.20.5": ("hashmap", "CANONICAL"), "2.3.0": ("rocksdb", "NATIVE")}
_JOB: Final = HERE / "support" / "flink" / "trees"


def tree_machine(release: str, work: Path) -> FlinkMachine:
    """Start a release of Flink with the job."""
    return FlinkMachine(release, work, (_JOB,), jars=maven_jars("trees"))


def run_job(machine: FlinkMachine, **request: Any) -> dict[str, Any]:
    """Run the job until it has seen all keys, and return its answer."""
    return machine.call("class", **{"class": "TreeJob"}, **request)


def described(value: dict[str, Any]) -> dict[str, Any]:
    """Return a tree as the job describes it: content and class of each node."""
    return _described(json.loads(value["json"]), "", json.loads(value["node_types"] or "{}"))


def _described(tree: Any, pointer: str, node_types: dict[str, str]) -> dict[str, Any]:
    node_type = node_types.get(pointer, "").split(" ")[0]
    match tree:
        case dict() if node_type != "POJONode":
            escaped = {k: k.replace("~", "~0").replace("/", "~1") for k in tree}
            children = {k: _described(v, f"{pointer}/{escaped[k]}", node_types) for k, v in tree.items()}
            return {"class": "ObjectNode", "children": children}
        case list():
            children_list = [_described(v, f"{pointer}/{i}", node_types) for i, v in enumerate(tree)]
            return {"class": "ArrayNode", "children": children_list}
        case dict():
            return {"class": node_type, "value": str(tree["java.lang.Long"])}
        case None:
            return {"class": node_type or "NullNode", "value": "" if node_type else "null"}
        case bool():
            return {"class": "BooleanNode", "value": str(tree).lower()}
        case int():
            default = "IntNode" if abs(tree) < 1 << 31 else "LongNode" if abs(tree) < 1 << 63 else "BigIntegerNode"
            return {"class": node_type or default, "value": str(tree)}
        case float():
            return {"class": node_type or "DoubleNode", "value": str(tree)}
    return {"class": node_type or "TextNode", "value": tree}


def pack_savepoints(
    packed: Path,
    kinds: Mapping[str, tuple[str, str]],
    start: Callable[[str, Path], FlinkMachine],
    run: Callable[..., dict[str, Any]],
) -> None:
    """Take a savepoint of a job for each name (a release, if ``start`` needs one), and pack them with the values that it saw."""
    with tempfile.TemporaryDirectory() as work, tarfile.open(packed, "w:xz") as tar:
        for name, (backend, kind) in kinds.items():
            machine = start(name, Path(work))
            try:
                folder = Path(work) / name
                answer = run(machine, backend=backend, format=kind, savepoint=str(folder))
            finally:
                machine.close()
            savepoint = Path(answer["savepoint"])
            (savepoint / "values.json").write_text(json.dumps(answer["values"], ensure_ascii=False), "utf-8")
            tar.add(savepoint, name)
    print(f"{packed.stat().st_size:,} bytes")


if __name__ == "__main__":
    pack_savepoints(PACKED, RELEASES, tree_machine, run_job)
