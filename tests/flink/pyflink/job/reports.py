"""What a restored job finds, told by its workers in files: a line of JSON for each key."""

import datetime
import json
import os
from decimal import Decimal
from pathlib import Path

from pyflink.common import Row
from pyflink.common.time import Instant


def to_json(value):
    """Return a Python value as JSON has it, nothing lost: what it has no form for is an object that says what it is."""
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
    """What a subtask of an operator tells of its keys, each once."""

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
    """Return how many keys all subtasks of an operator have told of."""
    return sum(len(file.read_text().splitlines()) for file in Path(folder).glob(f"{operator}-*"))
