"""The Kryo instance of a job: how it writes the values of each class, from registrations and declarations together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statetool.errors import UnknownSerializerError
from statetool.io.java_streams.reader import JavaClass
from statetool.serializers.kryo.classes import ClassTable
from statetool.serializers.kryo.codecs import jackson, libraries, messages, scala
from statetool.serializers.kryo.codecs.thrift import ThriftReader
from statetool.serializers.kryo.model import COLLECTIONS, LIST_LIKE, MAP_LIKE, Obj
from statetool.serializers.kryo.registry import Registry
from statetool.serializers.kryo.values import Args
from statetool.serializers.kryo.wire import Generation
from statetool.types.declared import TypeContext, skeleton, skeleton_of_steps
from statetool.types.java import JavaType

_JAVA_SERIALIZERS: Final = (
    "org.apache.flink.api.java.typeutils.runtime.kryo.JavaSerializer",
    "com.esotericsoftware.kryo.serializers.JavaSerializer",
)
_PLAIN_SERIALIZERS: Final = (
    "com.esotericsoftware.kryo.serializers.FieldSerializer",
    "com.esotericsoftware.kryo.serializers.CollectionSerializer",
    "com.esotericsoftware.kryo.serializers.MapSerializer",
    "org.apache.flink.formats.avro.utils.AvroKryoSerializerUtils",
    "org.apache.flink.api.java.typeutils.runtime.kryo.Serializers$SpecificInstanceCollectionSerializerForArrayList",
)


class KryoInstance:
    """Classes and registrations of one Kryo serializer.

    Parameters
    ----------
    registrations
        Names of the snapshot's registrations in order, with the serializer class if one was given.
    defaults
        Classes and interfaces for which the job set a default serializer, in order, with its class.
    """

    def __init__(
        self,
        gen: Generation,
        context: TypeContext,
        registrations: tuple[tuple[str, str | None], ...],
        defaults: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.gen = gen
        self.context = context
        self.classes = ClassTable(context)
        self.registry = Registry(gen, self.classes, registrations, defaults, chill=context.chill)
        self.thrift = ThriftReader(self.classes.find)
        #: Called with the class and the value of each object that was read.
        self.watch: Callable[[str, Any], None] | None = None
        #: Called with each object that becomes JSON text.
        self.on_object: Callable[[Obj], None] | None = None
        #: Results cached per class when reading: reader of the body, fields in wire order, whether it has references.
        self.readers: dict[str, Callable[[Any, Args], Any]] = {}
        self.fields: dict[tuple[str, Args], list[tuple[str, JavaType]]] = {}
        self.references: dict[str, bool] = {}
        #: Classes and enum constants (class and name) in the Java streams that were read.
        self.java_classes: dict[str, JavaClass] = {}
        self.java_constants: set[tuple[str, str]] = set()

    def known(self, name: str) -> bool:
        """Return True if values of a class can be read."""
        if name.startswith("["):
            return True
        if self._is_unregistered_message(name):
            return False
        if self.registry.container(name) is not None:
            return True
        if (
            self.registry.body(name) is not None
            or name in LIST_LIKE
            or name in MAP_LIKE
            or self.classes.find(name) is not None
        ):
            return True
        # Scala's are known by chill's serializers; abstract ones say as little as Object.
        return self.gen == 2 and name.startswith("scala.")

    def custom(self, name: str) -> str | None:
        """Return the serializer class that the job registered for a class, if statetool does not know its format."""
        serializer = self.registry.serializer_of(name)
        if (
            serializer is None
            or serializer in libraries.BODIES
            or serializer in libraries.CONTAINERS
            or serializer in _PLAIN_SERIALIZERS
            or serializer in messages.SERIALIZERS
            or serializer in _JAVA_SERIALIZERS
        ):
            return None
        if name in COLLECTIONS or self._declares_format(name, serializer):
            return None
        return serializer

    def _declares_format(self, name: str, serializer: str) -> bool:
        declaration = self.classes.find(name)
        if declaration is not None and declaration.kind == "written":
            return declaration.serializer == serializer
        return declaration is not None and declaration.kind in ("java", "protobuf", "thrift")

    def is_message(self, name: str) -> bool:
        """Return True if a class is a Protobuf or Thrift message, according to its declaration or its registration."""
        declaration = self.classes.find(name)
        if declaration is not None:
            return declaration.kind in ("protobuf", "thrift") and not self._is_unregistered_message(name)
        return name not in messages.ABSTRACT and self.registry.serializer_of(name) in messages.SERIALIZERS

    def _is_unregistered_message(self, name: str) -> bool:
        """Return True if the job's jar has a message for which no serializer of messages is registered: Kryo writes its Java fields.

        The declaration of a message for a ``TypeSerializer`` says as little about Kryo as the jar.
        """
        declaration = self.classes.find(name)
        if declaration is None or declaration.kind not in ("protobuf", "thrift"):
            return False
        if self.context.is_declared(name) and not declaration.serializer:
            return False
        return self.registry.serializer_of(name) not in messages.SERIALIZERS

    def is_scala_object(self, name: str) -> bool:
        """Return True if an undeclared class is that of a Scala ``object``, which chill writes without a body."""
        return self.gen == 2 and scala.is_empty(name) and self.classes.find(name) is None

    def is_tree(self, name: str) -> bool:
        """Return True if a class is a node of a JSON tree that Kryo writes field by field, and the user declared no other fields."""
        return name in jackson.TREES and not self.by_java(name) and not self.context.is_declared(name)

    def by_java(self, name: str) -> bool:
        """Return True if a class is written by Java serialization."""
        declaration = self.classes.find(name)
        if declaration is not None and declaration.kind == "java":
            return True
        return self.registry.serializer_of(name) in _JAVA_SERIALIZERS or name == "java.text.SimpleDateFormat"

    def unknown(self, name: str) -> UnknownSerializerError:
        """Make the error for an undeclared class."""
        error = self._unknown(name)
        error.java_class = name
        return error

    def _unknown(self, name: str) -> UnknownSerializerError:
        custom = self.registry.serializer_of(name)
        if custom is not None and self.custom(name) is not None:
            return UnknownSerializerError(
                f"values of {name} are written by {custom}, whose format is defined by user code",
                hint=f"{skeleton_of_steps(name, custom)}, or keep the bytes of framed values with on_error='keep_raw'",
            )
        if self._is_unregistered_message(name):
            return UnknownSerializerError(
                f"{name} is a message, but the snapshot has no registration of {' or '.join(messages.SERIALIZERS)} for it",
                hint="if the job registers one, declare the class with statetool.declare_protobuf or declare_thrift; otherwise Kryo wrote "
                "its private fields, which statetool does not read",
            )
        if reason := self.context.reason(name):
            return UnknownSerializerError(
                f"Kryo class {name} cannot be read by its class file: {reason}", hint=skeleton(name)
            )
        return UnknownSerializerError(f"the fields of Kryo class {name} are not known", hint=skeleton(name))
