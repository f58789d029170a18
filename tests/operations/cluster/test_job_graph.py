"""Names of operators from the job graph, with ids and answers of Flink 1.13 and 1.20."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pytest

from statetool.formats.operator_id import operator_id_for_position, operator_id_for_uid
from statetool.operations.cluster.job_graph import Node, Vertex, operator_names, parse_chain

SOURCE, KEYED = "cbc357ccb763df2852fee8c4fc7d55f2", operator_id_for_uid("keyed-uid")
ARROW, EVEN, LAST = (
    "8b66bce9f80f19736cb554745e27f15e",
    "66298503c7217e1e8d040265110f5612",
    "2ad5efb548c0955316f2f6d99cb4de3a",
)
NOWHERE, ODD, NOTHING = (
    "6de4f18306ed3608cfd54e12d05ed760",
    "0c23e62ea319711b24530a38c267707c",
    "7a0ab42763b908448eb59f5e2bc6258a",
)
IDS = (SOURCE, KEYED, ARROW, EVEN, LAST, NOWHERE, ODD, NOTHING)
NAME = "Source: numbers -> a -> b -> (even (2) -> last, even -> nowhere, odd)"
TREE = "Source: numbers<br/>+- a -&gt; b<br/>   :- even (2)<br/>   :  +- last, even<br/>   :     +- nowhere<br/>   +- odd<br/>"
SQL_IDS = ("20ba6b65f97481d5570070de90e4e791", "cdf5528fc65ae6b8b6b126cfdfcc40dd", "4ab008489d4c8ed0fe577883438cc1ff")
SQL_SOURCE = "bc764cd8ddf7a0cff126f51c16239658"
SQL_TREE = (
    "[3]:GroupAggregate(groupBy=[id], select=[id, SUM(amount) AS EXPR$1])<br/>"
    "+- [4]:Calc(select=[id, EXPR$1], where=[(EXPR$1 &lt;&gt; 7)])<br/>   +- totals[5]: Writer<br/>"
)


def vertex(vertex_id: str, name: str, description: str = "", *inputs: str) -> Vertex:
    return Vertex(vertex_id=vertex_id, name=name, chain=parse_chain(name, description), inputs=inputs)


def named(vertices: Sequence[Vertex], ids: Collection[str]) -> Mapping[str, str]:
    return operator_names(vertices, dict.fromkeys(ids, 1)).names


def test_a_chain_that_forks() -> None:
    vertices = [
        vertex(KEYED, "keyed -> nothing", "keyed<br/>+- nothing<br/>", SOURCE),
        vertex(SOURCE, NAME, TREE),
    ]
    assert named(vertices, IDS) == {
        SOURCE: "Source: numbers", ARROW: "a -> b", EVEN: "even (2)", LAST: "last, even", NOWHERE: "nowhere", ODD: "odd",
        KEYED: "keyed", NOTHING: "nothing",
    }  # fmt: skip
    # Without a tree, as before Flink 1.15, the ids confirm only chains that do not fork.
    names = named([vertex(KEYED, "keyed -> nothing", "keyed -&gt; nothing", SOURCE), vertex(SOURCE, NAME)], IDS)
    assert names == {SOURCE: NAME, KEYED: "keyed", NOTHING: "nothing"}


def test_sql_operators() -> None:
    source = vertex(SQL_SOURCE, "Source: orders[1]", "[1]:TableSourceScan(table=[[c, d, orders]], fields=[id])<br/>")
    name = "GroupAggregate[3] -> Calc[4] -> totals[5]: Writer"
    names = ["GroupAggregate[3]", "Calc[4]", "totals[5]: Writer"]
    expected = {SQL_SOURCE: "Source: orders[1]", **dict(zip(SQL_IDS, names, strict=True))}
    assert named([vertex(SQL_IDS[0], name, SQL_TREE, SQL_SOURCE), source], (SQL_SOURCE, *SQL_IDS)) == expected
    name = "GroupAggregate(groupBy=[id], select=[id]) -> Calc(where=[(a <> 7)]) -> Sink: Sink(table=[c.d.totals])"
    found = named([vertex(SQL_IDS[0], name, "", SQL_SOURCE), source], (SQL_SOURCE, *SQL_IDS))
    assert [found[number] for number in SQL_IDS] == name.split(" -> ")


@pytest.mark.parametrize(
    ("name", "description", "first"),
    [
        ("a -> b -> Map", "a -&gt; b<br/>+- Map<br/>", "a -> b"),
        ("[vertex-3]a -> Map", "a<br/>+- Map<br/>", "a"),
        ("GroupAggregate[4] -> Calc[5]", "what setDescription said<br/>+- [5]:Calc()<br/>", "GroupAggregate[4]"),
        ("a -> Map", "what setDescription said<br/>+- Map<br/>", "a -> Map"),
        ("a -> Map", "a<br/>      +- Map<br/>", "a -> Map"),
        ("a -> Map", "a<br/>Map<br/>", "a -> Map"),
        ("a -> Map", "", "a -> Map"),
        ("Map", "Map<br/>", "Map"),
    ],
)
def test_the_name_of_the_first_operator(name: str, description: str, first: str) -> None:
    assert vertex(SOURCE, name, description).first_name == first


def test_a_tree() -> None:
    assert parse_chain("a -> (b -> c, d)", "a<br/>:- b<br/>:  +- c<br/>+- d<br/>") == Node(
        name="a", outputs=(Node(name="b", outputs=(Node(name="c"),)), Node(name="d"))
    )


def test_operators_that_could_be_mistaken_have_no_name() -> None:
    head = operator_id_for_position(0, 2, [])
    twins = [operator_id_for_position(index, 0, [head]) for index in (1, 2)]
    fork = vertex(head, "a -> (b, c)", "a<br/>:- b<br/>+- c<br/>")
    assert named([fork], [head, *twins]) == {head: "a"}
    # The operator before a vertex looks as if it were the one after its first operator, which has a uid.
    first = operator_id_for_uid("first")
    last = operator_id_for_position(1, 1, [first])
    head = operator_id_for_position(2, 1, [last])
    after = vertex(head, "a -> b -> c", "a<br/>+- b<br/>   +- c<br/>", first)
    ids = [first, last, head, operator_id_for_uid("b"), operator_id_for_uid("c")]
    source = Vertex(vertex_id=first, name="s -> t", chain=None)
    assert named([source, after], ids)[head] == "a"
    assert last not in named([source, after], ids)


def test_operators_with_uids_get_the_names_that_remain() -> None:
    first, head = operator_id_for_uid("first"), operator_id_for_uid("head")
    others = [operator_id_for_uid(f"other-{i}") for i in range(3)]
    source = vertex(first, "s -> t", "s<br/>+- t<br/>")
    chain = vertex(head, "a -> (b, c)", "a<br/>:- b<br/>+- c<br/>", first)
    graph = [source, replace(chain, parallelism=2)]
    found = operator_names(graph, {first: 1, others[0]: 1, head: 2, others[1]: 2, others[2]: 2})
    assert found.names == {first: "s", head: "a", others[0]: "t"}
    assert found.possible == {others[1]: ("b", "c"), others[2]: ("b", "c")}
    # After a rescaling, or without information in it, the parallelism tells nothing.
    for operators in ({first: 4, head: 4, **dict.fromkeys(others, 4)}, dict.fromkeys((first, head, *others), 1)):
        found = operator_names(graph, operators)
        assert found.names == {first: "s", head: "a"}
        assert found.possible == dict.fromkeys(others, ("t", "b", "c"))
    twins = [source, vertex(head, "a -> (t, t)", "a<br/>:- t<br/>+- t<br/>", first)]
    assert named(twins, (first, head, *others)) == {first: "s", head: "a", **dict.fromkeys(others, "t")}
    # An operator of the snapshot that is not in the graph may have any id.
    assert operator_names(graph, {first: 1, others[0]: 1, head: 2, others[1]: 2}).possible == {}
    # Without a tree, it is not known where names end.
    flat = [Vertex(vertex_id=first, name="s -> t", chain=None), chain]
    assert operator_names(flat, dict.fromkeys((first, head, *others), 1)).possible == {}
