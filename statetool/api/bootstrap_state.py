"""Results of ``bootstrap_keyed_state`` and similar functions: tables with types, and the code of the job that will read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from statetool.api.execution import runner_of
from statetool.declaring.job_code import java_of_elements, java_of_keyed, python_of_keyed
from statetool.saving.bootstrap import ElementBootstrap, KeyedBootstrap, TableSchema
from statetool.saving.bootstrap.states import key_type, plan_table, python_states
from statetool.saving.bootstrap.tables import element_metas
from statetool.serializers.pyflink import PYTHON_STATE


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedState(KeyedBootstrap):
    """Keyed state from a table."""

    def describe(self) -> str:
        """Return the code by which a job declares this state: Java, or Python if types of PyFlink were given.

        Undeclared types follow from the columns or, with ``like=``, from the serializers. Only the table's schema and, for timers,
        the names of their services are read.

        Raises
        ------
        OptionError, UnknownNameError
            The types are incompatible or columns are missing. Writing raises the same errors.
        """
        table = _table_of(self)
        key = key_type(self, table)
        planned = plan_table(self, table, key)
        python = python_states(self)
        if python:
            return python_of_keyed((name.removeprefix(PYTHON_STATE), state) for name, state in python)
        return java_of_keyed(key, planned.all_metas)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorState(ElementBootstrap):
    """A list, union or broadcast state from a table."""

    def describe(self) -> str:
        """Return the Java code by which a job declares this state.

        Raises
        ------
        OptionError, UnknownNameError
            The types are incompatible or columns are missing. Writing raises the same errors.
        """
        (meta,) = element_metas([(self, _table_of(self))])
        return java_of_elements(meta)


def _table_of(bootstrap: KeyedBootstrap | ElementBootstrap) -> TableSchema:
    session: Any = getattr(bootstrap.data, "sparkSession", None)
    return runner_of(session).describe(bootstrap)
