"""What ``bootstrap_keyed_state`` and its like return: tables with types, and the code of the job that will read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from statetool.api.execution import runner_of
from statetool.declaring.job_code import java_of_elements, java_of_keyed, python_of_keyed
from statetool.saving.bootstrap import ElementBootstrap, KeyedBootstrap, Table
from statetool.saving.bootstrap.states import key_type, planned_table, python_states
from statetool.saving.bootstrap.tables import element_metas
from statetool.serializers.pyflink import PYTHON_STATE


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedState(KeyedBootstrap):
    """Keyed state from a table."""

    def describe(self) -> str:
        """Return the code by which a job declares this state: Java, or Python where types of PyFlink were given.

        Types follow from the columns where none are declared, and from the serializers with ``like=``. Nothing is read of the table but
        its schema and, of timers, the names of their services.

        Raises
        ------
        OptionError, UnknownNameError
            Types that do not go together, columns that are missing, as writing it would raise.
        """
        table = _table_of(self)
        key = key_type(self, table)
        planned = planned_table(self, table, key)
        python = python_states(self)
        if python:
            return python_of_keyed((name.removeprefix(PYTHON_STATE), state) for name, state in python)
        return java_of_keyed(key, planned.all_metas)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorState(ElementBootstrap):
    """A list, union or broadcast state from a table."""

    def describe(self) -> str:
        """Return the Java by which a job declares this state.

        Raises
        ------
        OptionError, UnknownNameError
            Types that do not go together, columns that are missing, as writing it would raise.
        """
        (meta,) = element_metas([(self, _table_of(self))])
        return java_of_elements(meta)


def _table_of(bootstrap: KeyedBootstrap | ElementBootstrap) -> Table:
    session: Any = getattr(bootstrap.data, "sparkSession", None)
    return runner_of(session).describe(bootstrap)
