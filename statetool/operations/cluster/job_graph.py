"""Names of the operators of a job, from the vertices of its job graph.

A vertex is a chain of operators: its id is that of the first one, and its name consists of all names, as in ``A -> (B -> C, D)``. Since Flink
1.15, the plan shows the chain as a tree. The ids of the other operators are not in the answers of the REST API. An operator without a uid has
an id that follows from the one before it, so a name is given to the operator of a snapshot that has this id. Operators with a uid get the names
that remain, if only one is possible.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, Final

from statetool.errors import ConnectionFailedError, FormatError
from statetool.formats.operator_id import operator_id_for_position
from statetool.io import files
from statetool.operations.cluster.client import RestClient, reading_answer
from statetool.operations.cluster.jobs import Job, find_job
from statetool.operations.cluster.overview import connect
from statetool.snapshot.operator_facts import OperatorFacts
from statetool.types.operators import OperatorLabel

_ARROW: Final = " -> "
_BREAK: Final = "<br/>"
#: Lines of a tree before the text: ``+- `` and ``:- ``, after three characters per level above.
_BRANCH: Final = re.compile(r"(?P<above>(?:[: ]  )*)[+:]- (?P<text>.*)", re.DOTALL)
#: Names of SQL operators since Flink 1.15, ``GroupAggregate[4]`` and ``Source: orders[1]``, and their descriptions ``[4]:GroupAggregate(...)``.
_SQL_NAME: Final = re.compile(r"[^>]+\[\d+\]")
_SQL_DESCRIPTION: Final = re.compile(r"\[(?P<number>\d+)\]:")
#: ``pipeline.vertex-name-include-index-prefix``.
_INDEX: Final = r"(?:\[vertex-\d+\])?"
_URLS: Final = ("http://", "https://", "flink://")
#: The end of a URL that means the job graph, not the newest checkpoint of the job.
_GRAPH: Final = "/plan"
_SAVE: Final = "save the answer of /jobs/<id> of the new job"
#: What separates the names in a chain whose tree is not known.
_SEPARATORS: Final = re.compile(r" -> |, |[()]")


#: Larger chains are not read as trees: the answer of a server may have any size.
_MOST_CHAINED: Final = 1000
_DEEPEST_CHAIN: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An operator in the chain of a vertex: its name, and the operators that follow it in the chain."""

    name: str
    outputs: tuple[Node, ...] = ()

    @property
    def size(self) -> int:
        """The number of operators from here on."""
        return 1 + sum(node.size for node in self.outputs)

    def names(self) -> Iterator[str]:
        """Yield the names of the operators from here on, each before those after it."""
        yield self.name
        for node in self.outputs:
            yield from node.names()


@dataclass(frozen=True, slots=True)
class OperatorNames:
    """Names of operators by operator id, and the possible names of those whose name cannot be told."""

    names: Mapping[str, str] = field(default_factory=dict)
    possible: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vertex:
    """A vertex of a job graph.

    Attributes
    ----------
    vertex_id
        Id of its first operator.
    name
        The names of all its operators.
    chain
        Its operators. ``None`` if the plan shows no tree, so that only ids confirm where a name ends.
    inputs
        Ids of the vertices before it.
    parallelism
        Its parallelism when Flink answered.
    """

    vertex_id: str
    name: str
    chain: Node | None
    inputs: tuple[str, ...] = ()
    parallelism: int = 1

    @property
    def first_name(self) -> str:
        """The name of the first operator, or that of the vertex if it is not known where the first name ends."""
        if self.chain is not None:
            return self.chain.name
        first = self.name.partition(_ARROW)[0]
        return first if _SQL_NAME.fullmatch(first) else self.name


def read_vertices(client: RestClient, job: Job) -> list[Vertex]:
    """Return the vertices of a job.

    Raises
    ------
    ConnectionFailedError
        The server does not answer.
    FormatError
        The answer is not that of Flink.
    """
    path = f"/jobs/{job.job_id}"
    tree = client.get(path)
    with reading_answer(f"{client.server}{path}"):
        return parse_vertices(tree)


def parse_vertices(tree: Any) -> list[Vertex]:
    """Return the vertices of an answer of ``/jobs/<id>``.

    Raises
    ------
    LookupError, TypeError, ValueError, AttributeError
        The tree is not such an answer.
    """
    plan = {str(node["id"]): node for node in tree["plan"]["nodes"]}
    return [_vertex(vertex, plan.get(str(vertex["id"]), {})) for vertex in tree["vertices"]]


def read_operator_names(client: RestClient, job: Job, operators: Mapping[str, int]) -> OperatorNames:
    """Return the names of the operators of a job as :func:`operator_names`, none if the server does not answer.

    Raises
    ------
    FormatError
        The answer is not that of Flink.
    """
    try:
        vertices = read_vertices(client, job)
    except ConnectionFailedError:
        return OperatorNames()
    return operator_names(vertices, operators)


def _vertex(tree: Any, plan: Any) -> Vertex:
    name = str(tree["name"])
    chain = parse_chain(name, str(plan.get("description", "")))
    inputs = tuple(str(given["id"]) for given in plan.get("inputs", ()))
    parallelism = int(tree["parallelism"])
    return Vertex(vertex_id=str(tree["id"]), name=name, chain=chain, inputs=inputs, parallelism=parallelism)


def parse_chain(name: str, description: str) -> Node | None:
    """Return the operators of a vertex, ``None`` if its name is not that of the tree in its description.

    Examples
    --------
    >>> parse_chain("Counts -> Filter", "Counts<br/>+- Filter<br/>")
    Node(name='Counts', outputs=(Node(name='Filter', outputs=()),))
    >>> parse_chain("Source: orders[1] -> Calc[2]", "[1]:TableSourceScan(table=[orders])<br/>+- [2]:Calc(select=[n])<br/>").name
    'Source: orders[1]'
    >>> parse_chain("a -> b -> Map", "a -&gt; b<br/>+- Map<br/>").name
    'a -> b'
    """
    lines = [html.unescape(line) for line in description.removesuffix(_BREAK).split(_BREAK)]
    if len(lines) > _MOST_CHAINED:
        return None
    below: list[tuple[int, str]] = [(0, lines[0])]
    for line in lines[1:]:
        branch = _BRANCH.fullmatch(line)
        depth = 0 if branch is None else len(branch["above"]) // 3 + 1
        if branch is None or depth > min(below[-1][0] + 1, _DEEPEST_CHAIN):
            return None
        below.append((depth, branch["text"]))
    if len(below) == 1 and _ARROW in name:  # one line for all, as before Flink 1.15
        return None
    found = re.fullmatch(_INDEX + _pattern(below), name, re.DOTALL)
    return None if found is None else _node(below, found.groups())


def _children(below: Sequence[tuple[int, str]]) -> Iterator[slice]:
    """Yield the parts of a tree below its first line, as depths and texts."""
    depth = below[0][0] + 1
    starts = [i for i, (at, _) in enumerate(below) if at == depth]
    yield from (slice(*ends) for ends in pairwise([*starts, len(below)]))


def _pattern(below: Sequence[tuple[int, str]]) -> str:
    """Return the pattern of the name of a chain, with a group per operator in the order of the tree."""
    text = below[0][1]
    numbered = _SQL_DESCRIPTION.match(text)
    own = (
        rf"((?:(?!{_ARROW}).)*\[{numbered['number']}\](?:: (?:(?!{_ARROW}).)*?)?)"
        if numbered
        else f"({re.escape(text)})"
    )
    outputs = [_pattern(below[part]) for part in _children(below)]
    if not outputs:
        return own
    return own + _ARROW + (outputs[0] if len(outputs) == 1 else rf"\({', '.join(outputs)}\)")


def _node(below: Sequence[tuple[int, str]], names: Sequence[str]) -> Node:
    return Node(name=names[0], outputs=tuple(_node(below[part], names[part]) for part in _children(below)))


def operator_names(vertices: Sequence[Vertex], operators: Mapping[str, int]) -> OperatorNames:
    """Return the names of operators by operator id.

    The first operator of each vertex has the id of the vertex. Others are named if they have no uid, and only if no other operator can be
    meant. Then each remaining operator has one of the remaining names of the vertices with its parallelism.

    Parameters
    ----------
    operators
        Parallelism of each operator of a snapshot of the job, by operator id.
    """
    found = {vertex.vertex_id: vertex.first_name for vertex in vertices}
    unnamed = set(operators) - found.keys()
    sizes = {v.vertex_id: v.name.count(_ARROW) + 1 if v.chain is None else v.chain.size for v in vertices}
    search = _Search(unnamed=unnamed, most=sum(sizes.values()) + len(operators))
    complete = set[str]()
    remaining: list[tuple[int, str]] = []
    for vertex in _inputs_first(vertices):
        inputs_named = complete.issuperset(vertex.inputs)
        if vertex.chain is None:
            names = _names_by_ids(vertex, search, inputs_named=inputs_named)
        else:
            names = dict(_outputs(vertex.vertex_id, vertex.chain, search, inputs_named=inputs_named))
        found.update(names)
        own = Counter(() if vertex.chain is None else vertex.chain.names())
        own -= Counter([vertex.first_name, *names.values()])
        remaining += [(vertex.parallelism, name) for name in own.elements()]
        if len(names.keys() | {vertex.vertex_id}) == sizes[vertex.vertex_id]:
            complete.add(vertex.vertex_id)
    # A snapshot has all operators of a job, also those without state.
    rest = {operator_id: p for operator_id, p in operators.items() if operator_id not in found}
    if any(v.chain is None for v in vertices) or len(rest) != len(remaining):
        return OperatorNames(found)
    possible = _possible_names(remaining, rest)
    found.update({operator_id: names[0] for operator_id, names in possible.items() if len(names) == 1})
    return OperatorNames(found, {operator_id: names for operator_id, names in possible.items() if len(names) > 1})


def _possible_names(nodes: Sequence[tuple[int, str]], operators: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Return the names that each operator may have, of as many nodes with parallelism and name as there are operators."""
    # The parallelism may have changed since the snapshot.
    by_parallelism = Counter(p for p, _ in nodes) == Counter(operators.values())
    names = dict[int, list[str]]()
    for parallelism, name in nodes:
        names.setdefault(parallelism if by_parallelism else 0, []).append(name)
    return {
        operator_id: tuple(dict.fromkeys(names[parallelism if by_parallelism else 0]))
        for operator_id, parallelism in operators.items()
    }


def _inputs_first(vertices: Sequence[Vertex]) -> list[Vertex]:
    """Return the vertices in an order in which each comes after its inputs, as they are if there is none."""
    by_id = {vertex.vertex_id: vertex for vertex in vertices}
    try:
        order = TopologicalSorter({v.vertex_id: v.inputs for v in vertices}).static_order()
        return [by_id[vertex_id] for vertex_id in order if vertex_id in by_id]
    except CycleError:
        return list(vertices)


@dataclass(slots=True)
class _Search:
    """Operators of a snapshot whose names are not known yet, and the largest number of operators in the job."""

    unnamed: set[str]
    most: int

    def take_output(self, operator_id: str, chained: int) -> str | None:
        """Return the only operator without a uid whose input is a given one, and do not return it again. ``None`` if there are others."""
        ids = {operator_id_for_position(index, chained, [operator_id]) for index in range(self.most)} & self.unnamed
        self.unnamed -= ids if len(ids) == 1 else set()
        return ids.pop() if len(ids) == 1 else None


def _outputs(operator_id: str, node: Node, search: _Search, *, inputs_named: bool) -> Iterator[tuple[str, str]]:
    """Yield the ids and names of the operators that follow one in its chain.

    Ids are combined with those of their inputs by XOR. So the input of an operator looks as if it followed it, if both are followed by as many
    operators. ``inputs_named`` tells that the input is known not to be among the unnamed operators.
    """
    lengths = [len(output.outputs) for output in node.outputs]
    for output, length in zip(node.outputs, lengths, strict=True):
        if lengths.count(length) > 1 or (length == len(lengths) and not inputs_named):
            continue
        following = search.take_output(operator_id, length)
        if following is not None:
            yield following, output.name
            yield from _outputs(following, output, search, inputs_named=True)


def _names_by_ids(vertex: Vertex, search: _Search, *, inputs_named: bool) -> dict[str, str]:
    """Return the names of a chain without forks, if as many ids follow from its first one as the name has parts. Empty for others."""
    names = vertex.name.split(_ARROW)
    if any(name.startswith("(") for name in names) or (len(names) > 2 and not inputs_named):
        return {}
    ids = [vertex.vertex_id]
    for remaining in range(len(names) - 2, -1, -1):
        following = search.take_output(ids[-1], min(remaining, 1))
        if following is None:
            return {}
        ids.append(following)
    return dict(zip(ids, names, strict=True))


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
