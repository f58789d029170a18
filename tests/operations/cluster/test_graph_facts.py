"""A job graph of Flink's REST API is a side of ``match``: it tells names, and the id of the first operator of each chain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import statetool
from statetool.cli.main import cli
from statetool.errors import FormatError
from statetool.operations.cluster.job_graph import graph_facts, parse_vertices
from statetool.snapshot.matching import Match, match_operators
from statetool.snapshot.operator_facts import OperatorFacts
from statetool.types.operators import OperatorLabel
from tests.support.servers.flink_rest import FlinkRest, flink_rest


def vertex(vertex_id: str, *names: str) -> dict[str, object]:
    """Return a chain of operators that follow one another."""
    lines = [f"{'   ' * (depth - 1)}+- {name}" if depth else name for depth, name in enumerate(names)]
    return {"id": vertex_id, "name": " -> ".join(names), "parallelism": 1, "description": "<br/>".join(lines)}


def matched(old: list[OperatorFacts], *vertices: dict[str, object]) -> list[Match]:
    tree = {"vertices": vertices, "plan": {"nodes": vertices}}
    return [m for m in match_operators(old, graph_facts(parse_vertices(tree)), {}).rows if m.old_id]


def operator(name: str) -> OperatorFacts:
    return OperatorFacts(label=OperatorLabel(name.encode().hex().ljust(32, "0"), "", name), has_state=True, states={})


def test_a_name_of_the_program_tells_the_first_operator_of_a_chain() -> None:
    (found,) = matched([operator("totals per shop")], vertex("a" * 32, "totals per shop", "Map"), vertex("b" * 32, "x"))
    assert (found.verdict, found.new_id, found.evidence) == ("matched", "a" * 32, ("name 'totals per shop'",))


@pytest.mark.parametrize(
    "name",
    [
        "Map", "Flat Map", "KeyedProcess", "Co-Process-Broadcast-Keyed", "Keyed Reduce", "Keyed Aggregation", "GroupAggregate[4]", "Process",
        "Window(TumblingEventTimeWindows(1000), EventTimeTrigger, ReduceFunction$1, PassThroughWindowFunction)", "Source: Custom Source",
        "async wait operator", "Co-Flat Map", "Sink: Writer",
    ],
)  # fmt: skip
def test_a_name_that_flink_gave_is_asked_for(name: str) -> None:
    """Nothing tells that the function is the same: another job has a Map, too."""
    (found,) = matched([operator(name)], vertex("a" * 32, name))
    assert (found.verdict, found.candidates) == ("ambiguous", ("a" * 32,))


def test_an_operator_inside_of_a_chain_has_no_id() -> None:
    (found,) = matched([operator("totals")], vertex("a" * 32, "Source: orders", "totals"))
    assert (found.verdict, found.new_id) == ("only in A", "")
    assert found.evidence == (
        "may be totals in the chain of Source: orders, whose id no job graph tells: match with a snapshot of the new job",
    )
    (found,) = matched([operator("totals")], vertex("a" * 32, "Map", "totals"), vertex("b" * 32, "totals"))
    assert (found.verdict, found.candidates) == ("ambiguous", ("b" * 32,))


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[FlinkRest]:
    with flink_rest("2.3", tmp_path) as running:
        yield running


def test_a_graph_comes_from_a_server_or_a_file(rest: FlinkRest, tmp_path: Path) -> None:
    url = f"{rest.url}/jobs/{rest.jobs['orders']}"
    answer = rest.answers[f"GET /jobs/{rest.jobs['orders']}"][-1][1]
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(answer))
    matching = statetool.match(str(file), f"{url}/plan")
    assert {m.old_id for m in matching.rows} == {v["id"] for v in answer["vertices"]}
    assert {m.verdict for m in matching.rows} == {"same"}
    done = CliRunner().invoke(cli, ["match", str(file), f"flink://{rest.host}/{rest.jobs['orders']}/plan", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == json.loads(json.dumps(matching.record()))


def test_the_plan_alone_lacks_names(rest: FlinkRest, tmp_path: Path) -> None:
    file = tmp_path / "graph.json"
    file.write_text(json.dumps({"plan": rest.answers[f"GET /jobs/{rest.jobs['orders']}"][-1][1]["plan"]}))
    with pytest.raises(FormatError, match="save the answer of /jobs/<id> of the new job"):
        statetool.match(str(file), str(file))
