"""Plan how tables become the state of one operator."""

from statetool.arrow.bootstrap.model import (
    SERVICE_COLUMNS,
    ElementBootstrap,
    KeyedBootstrap,
    OperatorPlan,
    StreamJob,
    Table,
    checked_services,
)
from statetool.arrow.bootstrap.operator import plan_operator, state_names

__all__ = [
    "SERVICE_COLUMNS",
    "ElementBootstrap",
    "KeyedBootstrap",
    "OperatorPlan",
    "StreamJob",
    "Table",
    "checked_services",
    "plan_operator",
    "state_names",
]
