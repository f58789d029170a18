"""Operators in HTML: their names, with the operator id on request."""

from __future__ import annotations

from collections.abc import Iterable

from statetool.html.markup import Html, element, html, table
from statetool.types.operators import OperatorLabel


def operator_name(operator: str) -> Html:
    """Return the name and uid of an operator, or the start of its id if it has neither. The title has the whole name and id.

    Examples
    --------
    >>> operator_name(OperatorLabel("90bea66de1c231edf33913ecd54406c1", name="Join[7]"))
    '<span title="Join[7], operator id 90bea66de1c231edf33913ecd54406c1">Join[7] (90bea66d)</span>'
    >>> operator_name("orders")
    'orders'
    """
    if not isinstance(operator, OperatorLabel):
        return html(operator)
    shown = operator.display if operator.name or operator.uid else f"{operator.short_id}…"
    title = ", ".join(filter(None, (operator.name, f"operator id {operator.operator_id}")))
    return element("span", shown, title=title)


def operator_ids(operators: Iterable[str]) -> Html:
    """Return the names, uids and ids of operators as a collapsed table."""
    rows = [(o.name, o.uid, o.operator_id) for o in operators if isinstance(o, OperatorLabel)]
    ids = table(("name", "uid", "operator id"), rows)
    return element("details", element("summary", "Operator ids"), ids) if rows else Html("")
