"""Display and completion in Jupyter and IPython."""

from __future__ import annotations

import statetool
from statetool.html.markup import table
from tests.support.zoo import ZOO


def test_a_snapshot_is_a_table_of_operators_an_operator_one_of_states() -> None:
    sp = statetool.load(ZOO)
    shown = sp._repr_html_()
    assert f"{len(sp.operators)} operators</caption>" in shown
    # The operators, and their ids in a collapsed table.
    assert shown.count("<tr>") == 2 * (1 + len(sp.operators))
    assert "with-ttl" in sp["with-ttl"]._repr_html_()
    assert sp["with-ttl"]._repr_html_().count("<tr>") == 1 + len(sp["with-ttl"].inventory.states)
    assert ">map</td>" in sp["with-ttl"].states["ttl-map"]._repr_html_()


def test_names_of_operators_are_completed() -> None:
    sp = statetool.load(ZOO)
    assert sp._ipython_key_completions_() == list(sp.operators)


def test_names_are_no_markup() -> None:
    assert "<b>" not in table(["<b>"], [["<b>"]], "<b>")
