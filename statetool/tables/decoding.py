"""Errors in decoding a batch, with their location and likely cause."""

from __future__ import annotations

from statetool.columns.values import StateLayout
from statetool.errors import StatetoolError, UnsupportedError
from statetool.formats.keyed.entries import EntryBatch
from statetool.serializers.core.base import Serializer, blame
from statetool.serializers.pyflink.serializer import PYTHON_STATE


class decoding:
    """Add the state's name, the location and suspect declarations to errors in decoding a batch."""

    def __init__(self, name: str, batch: EntryBatch, key: Serializer, shape: StateLayout | None = None) -> None:
        self.name = name
        self.batch = batch
        self.serializers = (key, *(() if shape is None else shape.serializers))
        self.declared = None if shape is None else shape.declared

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, StatetoolError):
            self.batch.locate(error).at(state=self.name)
            blame(error, *self.serializers)
            if self.declared is not None and not isinstance(error, UnsupportedError):
                error.hint = (
                    f"the job declared {self.name.removeprefix(PYTHON_STATE)!r} with another type than"
                    f" {self.declared.type_name}, or it is a ListState: look at its descriptor in the Python job"
                )
