"""The output of ``describe()``, pasted into a job, gives the serializers of the state, according to Flink's compatibility check."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

import statetool
from statetool import flink as types
from statetool.api.write.bootstrap import KeyedState
from statetool.io.output import Output
from statetool.serializers.core.base import Serializer
from tests.support.flink.families import FAMILIES, KEYS
from tests.support.flink.machine import JAVA, OPENS
from tools.flink_jars import compiled, flink_jars, java_tool

CORPUS: Final = JAVA / "corpus"
PAIR: Final = types.tuple_of("BIGINT", "BIGINT")
NUMBERS: Final = pa.table({"key": [1], "value": pa.array([{"f0": 1, "f1": 2}])})


def hex_snapshot(serializer: Serializer) -> str:
    out = Output()
    serializer.write_snapshot(out)
    return bytes(out).hex()


def program(bodies: list[str], descriptors: list[str]) -> str:
    """Return a class that reads lines of a variable and a snapshot, and prints Flink's verdict."""
    imports = sorted({line for body in bodies for line in body.splitlines() if line.startswith("import ")})
    code = "\n".join(line for body in bodies for line in body.splitlines() if not line.startswith("import "))
    imports += [f"import org.apache.flink.api.common.{n};" for n in ("ExecutionConfig", "typeutils.*", "functions.*")]
    pairs = "".join(f'all.put("{name}", {name});\n' for name in descriptors)
    return "\n".join(
        [
            *imports,
            "public class Pasted { public static void main(String[] args) throws Exception {",
            "ReduceFunction reduceFunction = (a, b) -> a;",
            "AggregateFunction aggregateFunction = new AggregateFunction() {",
            "public Object createAccumulator() { return null; } public Object add(Object v, Object a) { return a; }",
            "public Object getResult(Object a) { return a; } public Object merge(Object a, Object b) { return a; } };",
            code,
            "java.util.Map<String, org.apache.flink.api.common.state.StateDescriptor> all = new java.util.HashMap<>();",
            pairs,
            "java.util.Scanner lines = new java.util.Scanner(System.in);",
            "while (lines.hasNext()) { String name = lines.next(); byte[] raw = java.util.HexFormat.of().parseHex(lines.next());",
            "var d = all.get(name); d.initializeSerializerUnlessSet(new ExecutionConfig());",
            "var in = new org.apache.flink.core.memory.DataInputDeserializer(raw, 0, raw.length);",
            "var old = TypeSerializerSnapshot.readVersionedSnapshot(in, Pasted.class.getClassLoader());",
            "var own = d.getSerializer().snapshotConfiguration(); var c = own.resolveSchemaCompatibility(old);",
            'System.out.println(name + " " + (c.isCompatibleAsIs() || c.isCompatibleWithReconfiguredSerializer() ? "as is" : c)); } } }',
        ]
    )


@pytest.mark.full
def test_pasted_code_declares_what_was_written(newest_flink: str, tmp_path: Path) -> None:
    table = pa.table({"key": pa.array(KEYS, pa.int64()), **{f.name: f.column for f in FAMILIES}})
    declared = {f.name: statetool.value(f.type) for f in FAMILIES}
    many = pa.table(
        {"key": [1], "names": [["x"]], "prices": pa.array([[("a", 1.0)]], pa.map_(pa.string(), pa.float64()))}
    )
    kinds = {"names": statetool.list_of(), "prices": statetool.map_of()}
    pairs = {
        "total": statetool.reducing("BIGINT", column="key"),
        "mean": statetool.aggregating(PAIR, column="value"),
    }
    keyed = [
        statetool.bootstrap_keyed_state(table, states=declared),
        statetool.bootstrap_keyed_state(many, states=kinds),
        statetool.bootstrap_keyed_state(NUMBERS, states=pairs),
    ]
    elements = [
        statetool.bootstrap_union_state("offsets", NUMBERS, type=PAIR),
        statetool.bootstrap_broadcast_state("rules", NUMBERS, key_type="BIGINT", value_type=PAIR),
    ]
    snapshots = _snapshots(keyed, tmp_path)
    bodies = [*(b.describe() for b in keyed), *(b.describe() for b in elements)]
    variables = {
        name: re.search(rf'(\w+) = new \w+StateDescriptor<>\("{name}"', "\n".join(bodies)) for name in snapshots
    }
    assert None not in variables.values()
    names = {name: found[1] for name, found in variables.items() if found is not None}
    source = tmp_path / "src" / "Pasted.java"
    source.parent.mkdir()
    source.write_text(program(bodies, list(names.values())))
    path = [compiled(newest_flink, CORPUS), *flink_jars(newest_flink)]
    classpath = os.pathsep.join(map(str, path))
    subprocess.run([java_tool("javac"), "-nowarn", "-d", str(tmp_path), "-cp", classpath, str(source)], check=True)
    done = subprocess.run(
        [java_tool("java"), *OPENS, "-cp", os.pathsep.join((str(tmp_path), classpath)), "Pasted"],
        input="".join(f"{names[n]} {s}\n" for n, s in snapshots.items()),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == [f"{names[n]} as is" for n in snapshots], done.stderr[-3000:]


def _snapshots(keyed: list[KeyedState], work: Path) -> dict[str, str]:
    """Return the snapshots of the values' serializers in hex, as stored, by state name."""
    writer = statetool.SavepointWriter.new()
    for i, bootstrap in enumerate(keyed):
        writer = writer.with_operator(f"o{i}", bootstrap)
    written = writer.write(str(work / "sp"))
    states = [operator.inventory.keyed_states for operator in written.operators.values()]
    return {name: hex_snapshot(meta.value) for found in states for name, (_, meta) in found.items()}
