"""Case classes and enumerations of Scala, as scalac compiles them."""

from __future__ import annotations

import re
from typing import Final

from statetool.java.classes.class_file import STATIC, ClassFile
from statetool.java.classes.code_text import code_text

_PRODUCT: Final = "scala.Product"
_VALUE: Final = "Lscala/Enumeration$Value;"
_DESCRIPTOR: Final = re.compile(r"\[*(?:[BCDFIJSZ]|L[^;]+;)")
#: Parts of the names of methods that ``hashCode()`` of a case class calls unless the job defines it.
_GENERATED: Final = ("scala.runtime.ScalaRunTime$", "scala.runtime.Statics", "scala.util.hashing.MurmurHash3$")


def case_class_parameters(cls: ClassFile) -> tuple[tuple[str, str], ...] | None:
    """Return names and descriptors of the parameters of a case class, ``None`` if it is not a case class.

    Its method ``copy`` has them, and its fields begin with them.
    """
    copies = [m for m in cls.methods if m.name == "copy" and m.descriptor.endswith(f")L{cls.name.replace('.', '/')};")]
    if _PRODUCT not in cls.interfaces or len(copies) != 1:
        return None
    types = _DESCRIPTOR.findall(copies[0].descriptor.partition(")")[0][1:])
    fields = [f for f in cls.fields if not f.access & STATIC][: len(types)]
    return tuple((f.name, f.descriptor) for f in fields) if [f.descriptor for f in fields] == types else None


def enumeration_values(cls: ClassFile) -> tuple[str, ...]:
    """Return the names of the values of the object of an ``Enumeration`` in the order of their ids, if it numbers them itself."""
    return tuple(f.name.strip() for f in cls.fields if f.descriptor == _VALUE)


def own_hash_code(cls: ClassFile) -> str:
    """Return the code of the ``hashCode()`` that a job defines, empty if scalac generated it or the class has none."""
    method = next((m for m in cls.methods if (m.name, m.descriptor) == ("hashCode", "()I")), None)
    text = "" if method is None else code_text(cls, method)
    return "" if any(f"owner='{name}'" in text for name in _GENERATED) else text
