"""Reports of a restored job, written by its workers to files: one line of JSON per key."""

import datetime
import json
import os
from decimal import Decimal
from pathlib import Path

from pyflink.common import Row
from pyflink.common.time import Instant


def to_json(value):
    """Return a Python value as JSON without loss: a value without a JSON form becomes an object that describes it."""
    if isinstance(value, Row):
        return {"row": [to_json(field) for field in value._values], "kind": value.get_row_kind().name}
    if isinstance(value, (list, tuple)):
        return [to_json(element) for element in value]
    if isinstance(value, dict):
        return {"map": [[to_json(k), to_json(v)] for k, v in value.items()]}
    if isinstance(value, Instant):
        return {"seconds": value.seconds, "nanos": value.nanos}
    if isinstance(value, (bytes, bytearray)):
        return {"hex": bytes(value).hex()}
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return value


class Report:
    """Report of an operator's subtask on its keys, once per key."""

    def __init__(self, folder, operator):
        self.file = Path(folder, f"{operator}-{os.getpid()}-{id(self)}")
        self.operator, self.told_keys = operator, set()

    def tell(self, key, contents):
        if repr(key) in self.told_keys:
            return
        self.told_keys.add(repr(key))
        with self.file.open("a") as lines:
            lines.write(json.dumps([self.operator, to_json(key), contents]) + "\n")


def count_told_keys(folder, operator):
    """Return the number of keys that all subtasks of an operator have reported."""
    return sum(len(file.read_text().splitlines()) for file in Path(folder).glob(f"{operator}-*"))
