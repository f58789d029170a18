"""The job graph of the new job, as Flink's REST API shows it: which operators are chained, and how vertices exchange records.

``GET /jobs/<id>/plan`` returns the nodes with their inputs. A node is a chain of operators: its id is that of the first one, and its
description names all (:mod:`statetool.operations.cluster.job_graph`). The other operators are found by their names, which snapshots store since Flink 2.0.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from statetool.errors import FormatError, OptionError
from statetool.io import files
from statetool.snapshot.operator import OperatorInventory


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Records from another vertex. ``strategy`` is FORWARD, HASH, REBALANCE, RESCALE, BROADCAST, ... as the plan says."""

    source: str
    strategy: str

    @property
    def is_pointwise(self) -> bool:
        """Whether Flink cannot redistribute the in-flight data of the exchange (``SubtaskStateMapper.UNSUPPORTED``)."""
        return self.strategy in ("FORWARD", "RESCALE", "BROADCAST", "CUSTOM")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobVertex:
    """A chain of operators.

    ``names`` are the names of the operators, the first one first. ``last`` are those that no operator of the chain follows: several if it
    branches, none if the description does not tell.
    """

    vertex_id: str
    parallelism: int
    names: tuple[str, ...]
    last: tuple[str, ...] = ()
    inputs: tuple[Edge, ...] = ()


@dataclass(frozen=True, slots=True)
class JobGraph:
    """The vertices of a job by id."""

    vertices: Mapping[str, JobVertex]

    def vertex_of(self, operator: OperatorInventory) -> JobVertex | None:
        """Return the vertex of an operator; ``None`` if neither its id nor its name tells it."""
        if (first := self.vertices.get(operator.state.operator_id)) is not None:
            return first
        name = operator.label.name
        found = [v for v in self.vertices.values() if name and name in v.names]
        return found[0] if len(found) == 1 else None

    def is_last(self, operator: OperatorInventory) -> bool | None:
        """Return True if an operator is the last of its chain; ``None`` if the graph does not tell."""
        vertex = self.vertex_of(operator)
        if vertex is None:
            return None
        if len(vertex.names) == 1:
            return True
        if vertex.vertex_id == operator.state.operator_id:
            return False
        name = operator.label.name
        if name not in vertex.last:
            return False if vertex.last else None
        return True if len(vertex.last) == vertex.names.count(name) == 1 else None

    def chains(self, operators: Iterable[OperatorInventory]) -> dict[str, list[OperatorInventory]]:
        """Return the operators by their vertex. Operators whose vertex is not known are left out."""
        chains: dict[str, list[OperatorInventory]] = {}
        for operator in operators:
            if (vertex := self.vertex_of(operator)) is not None:
                chains.setdefault(vertex.vertex_id, []).append(operator)
        return chains

    def outputs(self, vertex_id: str) -> tuple[Edge, ...]:
        """Return the edges that start at a vertex, each with the vertex that it leads to as ``source``."""
        return tuple(
            Edge(source=v.vertex_id, strategy=e.strategy)
            for v in self.vertices.values()
            for e in v.inputs
            if e.source == vertex_id
        )


def read_job_graph(path: str) -> JobGraph:
    """Read a job graph: a file with the answer of ``/jobs/<id>/plan``, or its URL or that of the job.

    Raises
    ------
    OptionError
        The path is the URL of a server with several jobs.
    FormatError
        It is not a job graph.
    """
    if path.startswith(("http://", "https://", "flink://")):
        return parse_job_graph(_fetch(path), path)
    try:
        tree = json.loads(files.read_whole(path))
    except ValueError as error:
        raise _not_a_graph(path) from error
    return parse_job_graph(tree, path)


def _fetch(url: str) -> Any:
    from statetool.operations.cluster.jobs import find_job
    from statetool.operations.cluster.overview import connect

    client, jobs, address = connect(url.removesuffix("/plan"))
    job = find_job(jobs, address.job, address.server)
    return client.get(f"/jobs/{job.job_id}/plan")


def parse_job_graph(tree: Any, path: str) -> JobGraph:
    """Return the job graph of an answer of ``/jobs/<id>/plan``.

    Raises
    ------
    FormatError
        It is not a job graph.
    """
    try:
        plan = tree.get("plan", tree)
        vertices = [_vertex(node) for node in plan["nodes"]]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise _not_a_graph(path) from error
    if not vertices:
        raise OptionError(
            f"the job graph {path} has no vertices", hint="save the answer of /jobs/<id>/plan of the new job"
        )
    return JobGraph({v.vertex_id: v for v in vertices})


def _not_a_graph(path: str) -> FormatError:
    return FormatError("not a job graph", hint="save the answer of /jobs/<id>/plan of the new job").at(file=path)


def _vertex(node: Mapping[str, Any]) -> JobVertex:
    description = str(node.get("description", ""))
    names, last = _names(description)
    inputs = tuple(Edge(source=str(i["id"]), strategy=str(i.get("ship_strategy", ""))) for i in node.get("inputs", ()))
    return JobVertex(
        vertex_id=str(node["id"]), parallelism=int(node["parallelism"]), names=names, last=last, inputs=inputs
    )


def _names(description: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the operators of a description, and of the last ones: a tree since Flink 1.15, one line before."""
    lines = [html.unescape(line) for line in description.removesuffix("<br/>").split("<br/>")]
    if len(lines) == 1:
        names = tuple(part.strip("() ") for part in lines[0].split(" -> "))
        return names, () if "(" in lines[0] else names[-1:]
    names = tuple(line.lstrip(":+- ") for line in lines)
    depths = [len(line) - len(name) for line, name in zip(lines, names, strict=True)]
    return names, tuple(n for n, own, after in zip(names, depths, [*depths[1:], 0], strict=True) if after <= own)
