"""Findings and steps of ``check``, snapshots of cases, and job graphs."""

from __future__ import annotations

import json
from pathlib import Path

from statetool.compatibility.step_verdicts import StepVerdict
from statetool.compatibility.verdicts import Check


def found(check: Check) -> set[tuple[str, str]]:
    """Return rule and kind of all findings."""
    return {(f.rule, f.kind) for step in check.steps for f in step.findings}


def rules_of(check: Check) -> dict[str, str]:
    """Return the texts of the findings by their rules."""
    return {f.rule: f.text for s in check.steps for f in s.findings}


def step(check: Check, name: str) -> StepVerdict:
    return next(s for s in check.steps if s.step == name)


def snapshot_of(case: Path) -> str:
    return str(max((case / "snapshot").rglob("_metadata")).parent)


def job_graph(file: Path, *vertices: tuple[str, int, str, tuple[tuple[str, str], ...]]) -> str:
    """Write a job graph: id, parallelism, description, and inputs (id, strategy) of each vertex."""
    nodes = [
        {
            "id": vertex_id,
            "parallelism": parallelism,
            "description": description,
            "inputs": [{"num": i, "id": source, "ship_strategy": how} for i, (source, how) in enumerate(inputs)],
        }
        for vertex_id, parallelism, description, inputs in vertices
    ]
    file.write_text(json.dumps({"plan": {"jid": "0", "name": "job", "nodes": nodes}}))
    return str(file)
