"""Facts of the operators of a job graph, of which Flink's REST API tells names, and the id of the first operator of each chain."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from statetool.errors import FormatError
from statetool.io import files
from statetool.operations.cluster.job_graph import Vertex, parse_vertices
from statetool.snapshot.operator_facts import OperatorFacts
from statetool.types.operators import OperatorLabel

_URLS: Final = ("http://", "https://", "flink://")
#: The end of a URL that means the job graph, not the newest checkpoint of the job.
_GRAPH: Final = "/plan"
_SAVE: Final = "save the answer of /jobs/<id> of the new job"
#: What separates the names in a chain whose tree is not known.
_SEPARATORS: Final = re.compile(r" -> |, |[()]")


def is_graph_url(path: str) -> bool:
    """Return True for the URL of a job graph, ``http://host:8081/jobs/<id>/plan``."""
    return path.startswith(_URLS) and path.endswith(_GRAPH)


def fetch_graph_facts(url: str) -> list[OperatorFacts]:
    """Return the facts of the job graph at a URL of Flink's REST API.

    Raises
    ------
    ConnectionFailedError
        The server does not answer.
    OptionError
        It has several such jobs, or none.
    FormatError
        The answer is not that of Flink.
    """
    from statetool.operations.cluster.job_graph import read_vertices
    from statetool.operations.cluster.jobs import find_job
    from statetool.operations.cluster.overview import connect

    client, jobs, address = connect(url.removesuffix(_GRAPH))
    return graph_facts(read_vertices(client, find_job(jobs, address.job, address.server)))


def read_graph_facts(path: str) -> list[OperatorFacts] | None:
    """Return the facts of a file with the answer of ``/jobs/<id>``, ``None`` for JSON of another kind.

    Raises
    ------
    FormatError
        It is the answer of ``/jobs/<id>/plan``, which lacks the names of operators, or it lacks a field.
    """
    try:
        tree: Any = json.loads(files.read_whole(path))
    except ValueError:
        return None
    if not isinstance(tree, dict) or "plan" not in tree:
        return None
    try:
        return graph_facts(parse_vertices(tree))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise FormatError("not the job graph of a job", hint=_SAVE).at(file=path) from error


def graph_facts(vertices: Sequence[Vertex]) -> list[OperatorFacts]:
    """Return the facts of the operators of a job graph. Only the first operator of a chain has an id."""
    return [
        OperatorFacts(
            label=OperatorLabel("" if number else vertex.vertex_id, "", name),
            has_state=True,
            in_chain=vertex.first_name,
        )
        for vertex in vertices
        for number, name in enumerate(_names(vertex))
    ]


def _names(vertex: Vertex) -> Iterator[str]:
    if vertex.chain is not None:
        yield from vertex.chain.names()
        return
    yield vertex.first_name
    yield from filter(None, _SEPARATORS.split(vertex.name.removeprefix(vertex.first_name)))
