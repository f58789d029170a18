"""A stand-in for a Spark session, whose tasks run in this process."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa

LOCAL_BYTES = "spark.statetool.localBytes"


class Settings(dict[str, str]):
    """Settings of a session."""

    def set(self, name: str, value: str) -> None:
        self[name] = value

    def unset(self, name: str) -> None:
        del self[name]


class Frame:
    """A DataFrame whose tasks run in this process."""

    sparkSession = SimpleNamespace(conf=Settings())  # noqa: N815 - as Spark calls it
    #: Bytes that the last shuffle moved.
    shuffled = 0

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        self.batches = batches
        self.columns = batches[0].schema.names

    @property
    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self.batches[0].schema)

    def toDF(self, *names: str) -> Frame:
        return Frame([b.rename_columns(list(names)) for b in self.batches])

    def mapInArrow(self, run: Any, _: Any) -> Frame:
        return Frame([result for batch in self.batches for result in run(iter([batch]))])

    def unionAll(self, other: Frame) -> Frame:
        return Frame([*self.batches, *other.batches])

    def repartition(self, *_: object) -> Frame:
        Frame.shuffled = sum(batch.nbytes for batch in self.batches)
        return Frame([pa.Table.from_batches(self.batches).combine_chunks().to_batches()[0]])

    def collect(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(**row) for batch in self.batches for row in batch.to_pylist()]


class Tasks:
    """A session whose driver writes nothing, and whose tasks run in this process."""

    conf = {LOCAL_BYTES: "0"}  # noqa: RUF012 - nobody adds to it

    def range(self, start: int, stop: int, _: int, __: int) -> Frame:
        return Frame([pa.record_batch({"id": pa.array([i])}) for i in range(start, stop)])
