from __future__ import annotations

from typing import Literal

import pytest

from statetool.errors import UnsupportedError
from statetool.formats.state_meta import KEY_VALUE, StateMetaInfo
from statetool.io.cursor import Cursor
from statetool.saving.available import check_available
from statetool.saving.versions import parse_release
from statetool.serializers.table import snapshot_reader
from statetool.types.declared import TypeContext
from tests.support.snapshots import build


def state(gen: Literal[2, 5] | None) -> StateMetaInfo:
    value = snapshot_reader(TypeContext(kryo=gen)).snapshot(Cursor(build.list_of(build.kryo("java.util.UUID"))))
    void = snapshot_reader().snapshot(Cursor(build.simple("VoidNamespace", "org.apache.flink.runtime.state.")))
    serializers = {"VALUE_SERIALIZER": value, "NAMESPACE_SERIALIZER": void}
    return StateMetaInfo(name="ids", backend_type=KEY_VALUE, options={}, serializers=serializers)


@pytest.mark.parametrize(("gen", "release"), [(2, "2.0"), (2, "2.3"), (5, "1.20"), (5, "1.13")])
def test_values_of_the_other_kryo_are_refused(gen: Literal[2, 5], release: str) -> None:
    with pytest.raises(UnsupportedError, match=r"cannot read .*java\.util\.UUID .*state ids"):
        check_available(None, [state(gen)], parse_release(release))


@pytest.mark.parametrize(("gen", "release"), [(2, "1.13"), (2, "1.20"), (5, "2.0"), (5, "2.3"), (None, "2.0")])
def test_values_of_the_same_kryo_pass(gen: Literal[2, 5] | None, release: str) -> None:
    check_available(None, [state(gen)], parse_release(release))
