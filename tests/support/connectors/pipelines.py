"""Savepoints of CDC pipelines: an operator whose coordinator has the bytes of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import statetool
from statetool.api.write.options import WriteOptions
from statetool.saving.composition import OperatorChange
from tests.support.connectors.written import written_states


def coordinator_states() -> list[dict[str, Any]]:
    """Return the states of coordinators of schemas, with the contents that the writing program names."""
    return [s for s in written_states() if s["role"] == "schemas"]


def pipeline(folder: Path, coordinator: bytes | None = None) -> statetool.Savepoint:
    """Write a savepoint of a pipeline with an operator that is no pipeline's, by default with the schemas of release 3.5."""
    if coordinator is None:
        coordinator = next(s["data"] for s in coordinator_states() if s["release"] == "3.5.0")
    numbers = pa.table({"value": [1]})
    writer = statetool.SavepointWriter.new()
    for uid in ("schemas", "others"):
        writer = writer.with_operator(
            uid, statetool.bootstrap_list_state("numbers", numbers, type="BIGINT"), parallelism=1
        )
    writer.write(str(folder / "base"))
    options = WriteOptions(uids=["schemas", "others"])
    inventory = options.open(str(folder / "base"), str(folder / "pipeline"))
    options.write(inventory, str(folder / "pipeline"), changes={"schemas": OperatorChange(coordinator=coordinator)})
    return statetool.load(str(folder / "pipeline"), uids=["schemas", "others"])
