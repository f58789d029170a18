"""Hash formulas of the keys of tables."""

from __future__ import annotations

from statetool.errors import OptionError, UnsupportedError
from statetool.java.classes.jar_classes import JarClasses
from statetool.java.declaring.classes import declared_classes
from statetool.java.hashing.formulas import HashFormula, user_classes
from statetool.java.hashing.prove import prove_hashes
from statetool.saving.bootstrap.model import KeyedBootstrap
from statetool.serializers.avro.serializer import AvroSerializer
from statetool.serializers.core.base import Serializer
from statetool.types.declared import TypeContext


def formula_of(bootstrap: KeyedBootstrap, key: Serializer) -> HashFormula | None:
    """Return the hash function of keys: the declared one, or the one that the keys of the operator in ``like`` prove.

    Raises
    ------
    OptionError, UnsupportedError
        It is neither declared nor proved, and no column contains the key groups.
    """
    classes = user_classes(key)
    if not classes:
        return None
    source = JarClasses(bootstrap.jars).open() if bootstrap.jars else None
    types = TypeContext(classes=declared_classes(), source=source)
    declared = HashFormula.declared(bootstrap.hashes).with_types(classes, types)
    if bootstrap.like is not None:
        try:
            return prove_hashes(bootstrap.like.keyed.sources(), key, declared).formula
        except UnsupportedError:
            if bootstrap.key_group is None:
                raise
            return declared
    if bootstrap.key_group is None and (missing := [name for name in classes if declared.of(name) is None]):
        example = "avro[1, 10]()" if isinstance(classes[missing[0]], AvroSerializer) else "Objects.hash(a, b)"
        reason = types.hash_reason(missing[0])
        raise OptionError(
            f"the hash code of {', '.join(missing)}, the type of a key, is computed by user code{reason and f': {reason}'}",
            hint=f'declare it, as in hashes={{"{missing[0]}": "{example}"}}, pass the job\'s jar with jars=[...], or take it from an '
            "operator with like=",
        )
    return declared
