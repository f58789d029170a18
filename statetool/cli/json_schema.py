"""The JSON Schema of each command's JSON output, made from the records that the command prints."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from inspect import getdoc
from pkgutil import resolve_name
from typing import Any, Final, Literal, get_origin

import pyarrow as pa

from statetool.analysis.comparison.records import DIFFERENCES, DifferenceCounts, StructureDifference
from statetool.analysis.statistics.records import ESTIMATES, TABLES, GrowthRow
from statetool.analysis.verification.problems import Problem
from statetool.api.write.verbs.table import VERBS
from statetool.cli.output import JSON_VERSION
from statetool.connectors.backlog import BacklogRow
from statetool.connectors.checks import SourceCheck
from statetool.connectors.commit_ids import CommitIdRow
from statetool.connectors.lag import LagRow
from statetool.connectors.layouts.pipeline_schemas import TableSchemaRow
from statetool.connectors.outside.table_commits import TableCommitRow
from statetool.connectors.pending import PendingRow
from statetool.connectors.rows import EnumeratorRow, SinkRow, SourceRow, SplitRow
from statetool.errors import UnknownNameError, suggest
from statetool.operations.advice.findings import Finding
from statetool.operations.advice.history import Advice
from statetool.operations.cluster.overview import Overview
from statetool.operations.directories.chain import ChainCheckpoint, ChainFile
from statetool.operations.directories.orphans import OrphanFile
from statetool.operations.directories.snapshots import SnapshotRow
from statetool.operations.directories.trash import TrashedFile
from statetool.saving.uids import UidChange
from statetool.saving.verbs.copies import CopiedFile
from statetool.saving.verbs.erase import ErasedOperator, ErasedRow, Proof
from statetool.saving.verbs.remaining_copies import RemainingCopy
from statetool.snapshot.matching import Match
from statetool.snapshot.metadata_tables import FileRow, OperatorRow
from statetool.snapshot.state_info import StateInfo

_TYPES: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "bytes": "string"}
#: A row with the columns that the user's table or query has.
_ROW: Final[Mapping[str, str]] = {}
_INFO: Final = {
    "path": "str",
    "checkpoint_id": "int",
    "metadata_version": "int",
    "operators": [OperatorRow],
    "state_bytes": "int",
    "backlog": [BacklogRow],
}
_COMPARISON: Final = {
    "equal": "bool",
    "structure": [StructureDifference],
    "summary": [DifferenceCounts],
    "differences": [DIFFERENCES],
    "unread": ["str"],
}
_CONTENT: Final = {
    "path": "str",
    "checkpoint_id": "int",
    "operator": "str",
    "operator_name": "str",
    "operator_id": "str",
    "uid": "str",
    "key": "json",
    "key_group": "int | None",
    "found": "bool",
    "states": [
        {
            "state": "str",
            "kind": "str",
            "namespace": "json",
            "value": "json",
            "companions": _ROW,
            "undecoded": _ROW,
        }
    ],
    "timers": [{"domain": "str", "service": "str", "namespace": "json", "timestamp": "int", "time": "str | None"}],
}
_WARNING: Final = {"kind": "str", "text": "str"}
_JUDGMENT: Final = {"verdict": "str", "reason": "str", "remedy": "str"}
_STATE_VERDICT: Final = {"name": "str", **_JUDGMENT, "warnings": [_WARNING]}
_STEP: Final = {
    "step": "str",
    "status": "str",
    "reason": "str",
    "assumptions": [{"rule": "str", "text": "str", "option": "str"}],
    "findings": [
        {"rule": "str", "kind": "str", "operator": "str | None", "state": "str | None", "text": "str", "remedy": "str"}
    ],
}
_RUN: Final = {
    "flink": "str",
    "java": "str",
    "sample": "int | None",
    "seconds": "float",
    "states": [{"operator": "str", "state": "str", "entries": "int", "is_whole": "bool"}],
}
_CHECK: Final = {
    "verdict": "str",
    "reason": "str",
    "operators": [
        {"uid": "str", "operator_name": "str", **_JUDGMENT, "states": [_STATE_VERDICT], "warnings": [_WARNING]}
    ],
    "warnings": ["str"],
    "steps": [_STEP],
    "run": (_RUN, None),
    "renamed": [UidChange],
}
_ERASURE: Final = {
    "statetool": "str",
    "verb": "str",
    "finished_at": "str",
    "source": "str",
    "source_checkpoint_id": "int",
    "target": "str | None",
    "requested_keys": "int | None",
    "missing_keys": "int | None",
    "keys": ([{"number": "int", "found_in": ["str"], "key": "json"}], None),
    "where": "str | None",
    "entries": "int",
    "size_bytes": "int",
    "erased": [ErasedRow],
    "operators": [ErasedOperator],
    "proof": (Proof, None),
    "copies": [RemainingCopy],
}
_JOB: Final = {"job_id": "str", "name": "str"}
_TRIGGERED: Final = ({**_JOB, "path": "str"}, {**_JOB, "request": "str", "body": _ROW}, _INFO)
#: The JSON output of commands whose verb does not declare the record of its rows (:attr:`Verb.answer`): a list stands for an array, a
#: mapping for an object, a class for an object with its fields, a text for a type, and a tuple for alternatives, which options choose.
_MADE_BY_HAND: Final[Mapping[str, Any]] = {
    "info": _INFO,
    "ls": (
        [{"operator": "str", "operator_name": "str", "operator_id": "str", "uid": "str", "table": "str"}],
        [SnapshotRow],
        Overview,
    ),
    "states": [StateInfo],
    "files": [FileRow],
    "schema": ({"ddl": "str"}, _ROW),
    "head": [_ROW],
    "get": _CONTENT,
    "count": [{"operator": "str", "table": "str", "rows": "int"}],
    "sql": [_ROW],
    "stats": (
        {**{name: [record] for name, record in TABLES.items()}, "unread": ["str"]},
        {**{name: [record] for name, record in ESTIMATES.items()}, "unread": ["str"]},
        *([record] for record in (*TABLES.values(), *ESTIMATES.values(), GrowthRow)),
    ),
    "check": _CHECK,
    "verify": [Problem],
    "diff": _COMPARISON,
    "match": [Match],
    "transform": (_COMPARISON, [StateInfo]),
    "split": [{"target": "str", "operator": "str", "max_parallelism": "int", "size_bytes": "int"}],
    "erase": _ERASURE,
    "keep": _ERASURE,
    "copy": ({"metadata_file": "str", "files": "int", "size_bytes": "int"}, [CopiedFile]),
    "export": {"operator": "str", "table": "str", "target": "str", "format": "str", "rows": "int"},
    "sources list": [SourceRow],
    "sources show": ([SplitRow], [EnumeratorRow]),
    "sources check": [SourceCheck],
    "sources schemas": [TableSchemaRow],
    "sources lag": [LagRow],
    "sinks list": [SinkRow],
    "sinks committed": [CommitIdRow],
    "sinks check": [TableCommitRow],
    "sinks pending": [PendingRow],
    "jobs": Overview,
    "savepoint": _TRIGGERED,
    "checkpoint": _TRIGGERED,
    "advise": [Advice],
    "lint": [Finding],
    "chain": (
        {
            "checkpoints": [ChainCheckpoint],
            "files": [ChainFile],
            "unreadable": [{"path": "str", "problem": "str"}],
        },
        [TrashedFile],
    ),
    "orphans": ([OrphanFile], [TrashedFile]),
    "doctor": [{"what": "str", "fine": "bool", "found": "str"}],
    "kernels": {
        "code_of": "str",
        "kept_in": "str | None",
        "looked_for_in": ["str"],
        "kernels": "int",
        "written_to": "str | None",
    },
}
#: The JSON output of each command.
ANSWERS: Final[Mapping[str, Any]] = {
    **_MADE_BY_HAND,
    **{name: [resolve_name(v.answer)] for v in VERBS.values() if v.answer for name in v.command_names()},
}


def json_schema(command: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a command's JSON output.

    Raises
    ------
    UnknownNameError
        No command with JSON output has this name.
    """
    if command not in ANSWERS:
        raise UnknownNameError(f"no command {command!r} with JSON output", hint=suggest(command, ANSWERS))
    answer, definitions = ANSWERS[command], _Definitions()
    alternatives = [definitions.of_answer(a) for a in (answer if isinstance(answer, tuple) else (answer,))]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:statetool:json:{JSON_VERSION}:{command.replace(' ', ':')}",
        "title": f"statetool {command} --json",
        **(alternatives[0] if len(alternatives) == 1 else {"anyOf": alternatives}),
        **({"$defs": definitions.made} if definitions.made else {}),
    }


def json_schema_text(command: str) -> str:
    """Return the JSON Schema of a command's JSON output as text, with one line per field; errors as for :func:`json_schema`."""
    text = json.dumps(json_schema(command), indent=2, ensure_ascii=False)
    # The innermost objects and lists are one line each.
    return re.sub(r"(?<=[:\[,\n ])([{\[])([^{}\[\]]*)([}\]])", lambda m: m[1] + " ".join(m[2].split()) + m[3], text)


class _Definitions:
    """Schemas of classes, each once, as ``$defs``."""

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}

    def of_answer(self, answer: Any) -> dict[str, Any]:
        """Return the schema of a whole answer: an object, which has the version of its form, or an array."""
        schema = self.of_class(answer) if isinstance(answer, type) else self.of(answer)
        if "properties" in schema:
            return schema | _object({"json_version": {"const": JSON_VERSION}} | schema["properties"])
        return schema

    def of(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a part of :data:`ANSWERS`."""
        if isinstance(kind, str):
            return self.of_text(kind, "")
        if isinstance(kind, list):
            return {"type": "array", "items": self.of(kind[0])}
        if isinstance(kind, tuple):
            return _nullable(self.of(kind[0]))
        if isinstance(kind, pa.Schema):
            return _object({f.name: self.of(_arrow(f)) for f in kind})
        if isinstance(kind, Mapping):
            return _object({name: self.of(part) for name, part in kind.items()}) if kind else {"type": "object"}
        if kind.__name__ not in self.made:
            self.made[kind.__name__] = {}  # its place
            self.made[kind.__name__] = self.of_class(kind)
        return {"$ref": f"#/$defs/{kind.__name__}"}

    def of_class(self, kind: type[Any]) -> dict[str, Any]:
        """Return the schema of a dataclass, with the texts of its docstring."""
        text = getdoc(kind) or ""
        described = _attributes(text)
        properties = {
            f.name: self.of_text(str(f.type), kind.__module__)
            | ({"description": described[f.name]} if f.name in described else {})
            for f in fields(kind)
        }
        return {"description": text.partition("\n\n")[0].replace("``", "").replace("\n", " "), **_object(properties)}

    def of_text(self, text: str, module: str) -> dict[str, Any]:
        """Return the schema of an annotation."""
        if text.endswith(" | None"):
            return _nullable(self.of_text(text.removesuffix(" | None"), module))
        if found := re.fullmatch(r"tuple\[(.+), \.\.\.\]", text):
            return {"type": "array", "items": self.of_text(found[1], module)}
        if text == "json":
            return {}
        if text in _TYPES:
            return {"type": _TYPES[text]}
        named = getattr(sys.modules.get(module), text, None)
        if is_dataclass(named):
            return self.of(named)
        if not text.startswith("Literal[") and get_origin(named) is not Literal:
            raise TypeError(f"no JSON Schema for the type {text} in {module}")
        return {"type": "string"}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": [schema["type"], "null"]} if schema.keys() == {"type"} else {"anyOf": [schema, {"type": "null"}]}


def _arrow(field: pa.Field) -> str:
    return ("int" if pa.types.is_integer(field.type) else "str") + (" | None" if field.nullable else "")


def _attributes(text: str) -> dict[str, str]:
    """Return the descriptions in the section ``Attributes`` of a docstring, by name."""
    section = text.partition("Attributes\n----------\n")[2].partition("\n\n")[0]
    found: dict[str, str] = {}
    for names, lines in re.findall(r"^(\S.*)\n((?: +.*\n?)+)", section, re.MULTILINE):
        found |= dict.fromkeys(names.split(", "), " ".join(lines.replace("``", "").split()))
    return found
