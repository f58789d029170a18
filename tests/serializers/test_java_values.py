"""Plain values of objects written by Java serialization."""

from __future__ import annotations

import json

import pytest

import statetool
from statetool.errors import FormatError

#: class J { int n = 7; Integer boxed = 8; String s = "\u00e9"; byte[] raw = {1, -1}; int[] more = {1, 2}; Thread.State e = NEW;
#: List<Object> list = ["x", null]; J me = this; Class<?> c = String.class; }, as written by ObjectOutputStream of Java 17.
WRITTEN = bytes.fromhex(
    "aced0005737200014a00000000000000010200094900016e4c0005626f7865647400134c6a6176612f6c616e672f496e74656765723b4c"
    "0001637400114c6a6176612f6c616e672f436c6173733b4c0001657400184c6a6176612f6c616e672f5468726561642453746174653b4c"
    "00046c6973747400104c6a6176612f7574696c2f4c6973743b4c00026d657400034c4a3b5b00046d6f72657400025b495b000372617774"
    "00025b424c0001737400124c6a6176612f6c616e672f537472696e673b787000000007737200116a6176612e6c616e672e496e74656765"
    "7212e2a0a4f781873802000149000576616c7565787200106a6176612e6c616e672e4e756d62657286ac951d0b94e08b02000078700000"
    "0008767200106a6176612e6c616e672e537472696e67a0f0a4387a3bb34202000078707e7200166a6176612e6c616e672e546872656164"
    "24537461746500000000000000001200007872000e6a6176612e6c616e672e456e756d000000000000000012000078707400034e455773"
    "7200136a6176612e7574696c2e41727261794c6973747881d21d99c7619d03000149000473697a65787000000002770400000002740001"
    "78707871007e0009757200025b494dba602676eab2a50200007870000000020000000100000002757200025b42acf317f8060854e00200"
    "0078700000000201ff740002c3a9"
)


def test_an_object_is_shown_by_its_fields() -> None:
    shown = statetool.read_java(WRITTEN)
    assert shown["$class"] == "J"
    assert shown["fields"] == {
        "n": 7,
        "boxed": 8,
        "s": "\u00e9",
        "raw": {"$hex": "01ff"},
        "more": [1, 2],
        "e": {"$enum": "NEW"},
        "list": {"$class": "java.util.ArrayList", "fields": {"size": 2}, "written": [{"$hex": "00000002"}, "x", None]},
        "me": {"$cycle": "J"},
        "c": {"$class": "java.lang.String"},
    }
    assert json.loads(json.dumps(shown)) == shown


@pytest.mark.parametrize("damaged", [WRITTEN[:-1], WRITTEN + b"\0", b"\0" * 9, b""])
def test_what_is_not_one_whole_stream_is_refused(damaged: bytes) -> None:
    with pytest.raises(FormatError):
        statetool.read_java(damaged)
