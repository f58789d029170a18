"""Logical types, and the serializers that Flink creates for them, as the Java objects stored in snapshots.

A ``RowData`` snapshot stores its logical types by Java serialization. Those of arrays and maps also store the serializers of their
elements, keys and values, whose getters are lambdas. The bytes equal Flink's, except for a detail that the job determines: whether two
fields of one name share a string.

Follows ``LogicalType`` and its subclasses, ``InternalSerializers``, ``RowData.createFieldGetter`` and
``ArrayData.createElementGetter``, Flink 1.13 to 2.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from statetool.errors import UnsupportedError
from statetool.io.java_streams.reader import JavaArray, JavaClass, JavaEnum, JavaObject, JavaText
from statetool.io.java_streams.writer import lineage
from statetool.serializers.sql import java_classes as java
from statetool.serializers.sql.logical_types import SqlType

_ROOTS: Final = {
    "INT": "INTEGER",
    "TIME": "TIME_WITHOUT_TIME_ZONE",
    "TIMESTAMP": "TIMESTAMP_WITHOUT_TIME_ZONE",
    "TIMESTAMP_LTZ": "TIMESTAMP_WITH_LOCAL_TIME_ZONE",
    "INTERVAL YEAR TO MONTH": "INTERVAL_YEAR_MONTH",
    "INTERVAL DAY TO SECOND": "INTERVAL_DAY_TIME",
    "DISTINCT": "DISTINCT_TYPE",
    "STRUCTURED": "STRUCTURED_TYPE",
}
#: Serializers without parts, by root.
SINGLETONS: Final = {
    "CHAR": "StringDataSerializer",
    "VARCHAR": "StringDataSerializer",
    "BOOLEAN": "BooleanSerializer",
    "BINARY": "BytePrimitiveArraySerializer",
    "VARBINARY": "BytePrimitiveArraySerializer",
    "TINYINT": "ByteSerializer",
    "SMALLINT": "ShortSerializer",
    "INT": "IntSerializer",
    "DATE": "IntSerializer",
    "TIME": "IntSerializer",
    "INTERVAL YEAR TO MONTH": "IntSerializer",
    "BIGINT": "LongSerializer",
    "INTERVAL DAY TO SECOND": "LongSerializer",
    "FLOAT": "FloatSerializer",
    "DOUBLE": "DoubleSerializer",
    "VARIANT": "VariantSerializer",
    "BITMAP": "BitmapSerializer",
}
#: Getters of ``RowData`` that capture only the position of the field, numbered by javac in source order.
_FIELD_LAMBDAS: Final = {
    root: number
    for number, roots in enumerate(
        (
            ("CHAR", "VARCHAR"), ("BOOLEAN",), ("BINARY", "VARBINARY"), ("TINYINT",), ("SMALLINT",),
            ("INT", "DATE", "TIME", "INTERVAL YEAR TO MONTH"), ("BIGINT", "INTERVAL DAY TO SECOND"), ("FLOAT",), ("DOUBLE",),
            ("ARRAY",), ("MULTISET", "MAP"), ("RAW",), ("VARIANT",), ("BITMAP",),
        ),
        1,
    )
    for root in roots
}  # fmt: skip
#: Getters of ``ArrayData`` are its methods: name, return type.
_ELEMENT_METHODS: Final = {
    **dict.fromkeys(("CHAR", "VARCHAR"), ("getString", java.signature(java.DATA + "StringData"))),
    **dict.fromkeys(("BINARY", "VARBINARY"), ("getBinary", "[B")),
    **dict.fromkeys(("INT", "DATE", "TIME", "INTERVAL YEAR TO MONTH"), ("getInt", "I")),
    **dict.fromkeys(("BIGINT", "INTERVAL DAY TO SECOND"), ("getLong", "J")),
    **dict.fromkeys(("MULTISET", "MAP"), ("getMap", java.signature(java.DATA + "MapData"))),
    "BOOLEAN": ("getBoolean", "Z"),
    "TINYINT": ("getByte", "B"),
    "SMALLINT": ("getShort", "S"),
    "FLOAT": ("getFloat", "F"),
    "DOUBLE": ("getDouble", "D"),
    "ARRAY": ("getArray", java.signature(java.DATA + "ArrayData")),
    "RAW": ("getRawValue", java.signature(java.DATA + "RawValueData")),
    "VARIANT": ("getVariant", "Lorg/apache/flink/types/variant/Variant;"),
    "BITMAP": ("getBitmap", "Lorg/apache/flink/types/bitmap/Bitmap;"),
}
_INT_CACHE: Final = range(-128, 128)
_INVOKE_STATIC, _INVOKE_INTERFACE = 6, 9


def type_object(sql: SqlType, form: java.StreamForm) -> JavaObject:
    """Return a logical type as the Java object that Flink serializes.

    Raises
    ------
    UnsupportedError
        The release does not have such a type, or it consists of user code.
    """
    return _Objects(form).type(sql)


def serializer_object(sql: SqlType, form: java.StreamForm) -> JavaObject:
    """Return the serializer that Flink creates for a type (``InternalSerializers.create``) as the Java object.

    Raises
    ------
    UnsupportedError
        The release does not have such a type, or it has no serializer.
    """
    return _Objects(form).serializer(sql)


def _object(cls: JavaClass, **fields: Any) -> JavaObject:
    missing = {name for part in lineage(cls) for _, name in part.fields} ^ fields.keys()
    assert not missing, (cls.name, missing)
    return JavaObject(cls, fields)


def _java_list(items: Iterable[Any]) -> JavaObject:
    """``Collections.unmodifiableList(new ArrayList<>(items))``."""
    elements = list(items)
    size = len(elements)
    inner = JavaObject(java.ARRAY_LIST, {"size": size}, [size.to_bytes(4, "big"), *elements])
    return _object(java.UNMODIFIABLE_LIST, c=inner, list=inner)


def _immutable_list(items: Sequence[Any]) -> JavaObject:
    """``List.copyOf(items)``."""
    return JavaObject(java.IMMUTABLE_LIST, {"tag": 1}, [len(items).to_bytes(4, "big"), *items])


def _text(value: str | None) -> JavaText | None:
    return None if value is None else JavaText(value)


class _Objects:
    """Builder of the objects of one stream; objects that Java shares are built once."""

    def __init__(self, form: java.StreamForm) -> None:
        self.form = form
        self.types: dict[int, JavaObject] = {}
        self.singletons: dict[str, JavaObject] = {}
        self.ints: dict[int, JavaObject] = {}
        self.methods: dict[str, JavaObject] = {}

    # ---- types ----------------------------------------------------------------------------------

    def type(self, sql: SqlType) -> JavaObject:
        if id(sql) not in self.types:
            self.types[id(sql)] = self._type(sql)
        return self.types[id(sql)]

    def _type(self, sql: SqlType) -> JavaObject:
        check_release(sql, self.form)
        base: dict[str, Any] = {
            "isNullable": sql.nullable,
            "typeRoot": JavaEnum(java.TYPE_ROOT, _ROOTS.get(sql.root, sql.root)),
        }
        match sql.root:
            case root if root in java.PLAIN_TYPES:
                return _object(java.PLAIN_TYPES[root], **base)
            case root if root in java.SIZED_TYPES:
                return _object(java.SIZED_TYPES[root], **base, length=sql.length)
            case "DECIMAL":
                return _object(java.DECIMAL_TYPE, **base, precision=sql.precision, scale=sql.scale)
            case "TIME":
                return _object(java.TIME_TYPE, **base, precision=sql.precision)
            case "TIMESTAMP" | "TIMESTAMP_LTZ":
                kind = JavaEnum(java.TIMESTAMP_KIND, sql.kind)
                return _object(java.TIMESTAMP_TYPES[sql.root], **base, precision=sql.precision, kind=kind)
            case "INTERVAL YEAR TO MONTH":
                resolution = JavaEnum(java.YEAR_MONTH, sql.resolution)
                return _object(java.YEAR_MONTH_TYPE, **base, yearPrecision=sql.precision, resolution=resolution)
            case "INTERVAL DAY TO SECOND":
                resolution = JavaEnum(java.DAY_TIME, sql.resolution)
                digits = {"dayPrecision": sql.precision, "fractionalPrecision": sql.scale}
                return _object(java.DAY_TIME_TYPE, **base, **digits, resolution=resolution)
            case "ARRAY" | "MULTISET":
                cls = java.ARRAY_TYPE if sql.root == "ARRAY" else java.MULTISET_TYPE
                return _object(cls, **base, elementType=self.type(sql.parts[0][1]))
            case "MAP":
                (_, key), (_, value) = sql.parts
                return _object(java.MAP_TYPE, **base, keyType=self.type(key), valueType=self.type(value))
            case "ROW":
                return _object(java.ROW_TYPE, **base, fields=_java_list(self.fields(java.ROW_FIELD, sql)))
            case "DISTINCT":
                source = self.type(sql.parts[0][1])
                return _object(java.DISTINCT_TYPE, **base, **self.user(sql), sourceType=source)
            case "STRUCTURED":
                return self.structured(sql, base)
            case "RAW":
                return self.raw(sql, base)
        raise UnsupportedError(f"logical type {sql} cannot be written")

    def fields(self, cls: JavaClass, sql: SqlType, start: int = 0) -> list[JavaObject]:
        descriptions = sql.descriptions or (None,) * len(sql.parts)
        parts = list(zip(sql.parts, descriptions, strict=True))[start:]
        return [_object(cls, description=_text(d), name=_text(n), type=self.type(t)) for (n, t), d in parts]

    def user(self, sql: SqlType) -> dict[str, Any]:
        user = sql.user
        assert user is not None
        identifier = None
        if user.identifier is not None:
            names = zip(("catalogName", "databaseName", "objectName"), map(_text, user.identifier), strict=True)
            identifier = _object(self.form.identifier, **dict(names))
        return {"isFinal": user.final, "description": _text(user.description), "objectIdentifier": identifier}

    def structured(self, sql: SqlType, base: dict[str, Any]) -> JavaObject:
        user = sql.user
        assert user is not None
        parent = user.parent
        attributes = self.fields(java.ATTRIBUTE, sql, 0 if parent is None else len(parent.parts))
        comparison = user.comparison or self.form.usual_comparison
        named: dict[str, Any] = {
            self.form.comparison_word: JavaEnum(self.form.comparison, comparison),
            "implementationClass": java.plain_class(sql.class_name) if sql.class_name else None,
        }
        if self.form.release >= (2, 1):
            named["className"] = sql.class_name or None
        return _object(
            self.form.structured,
            **base,
            **self.user(sql),
            **named,
            isInstantiable=user.instantiable,
            attributes=_immutable_list(attributes) if self.form.copies_attributes else _java_list(attributes),
            superType=None if parent is None else self.type(parent),
        )

    def raw(self, sql: SqlType, base: dict[str, Any]) -> JavaObject:
        if sql.tree is not None:
            return sql.tree
        cls = java.plain_class(sql.class_name)
        return _object(java.RAW_TYPE, **base, clazz=cls, serializer=self.raw_serializer(sql))

    def raw_serializer(self, sql: SqlType) -> JavaObject:
        if sql.tree is not None and isinstance(sql.tree.fields.get("serializer"), JavaObject):
            serializer: JavaObject = sql.tree.fields["serializer"]
            return serializer
        name = sql.serializer.rpartition(".")[2]
        known = java.SINGLETONS.get(name)
        if sql.tree is not None or known is None or known.name != sql.serializer:
            raise UnsupportedError(
                f"the serializer {sql.serializer or 'of a type information'} of {sql} cannot be written from nothing",
                hint="take the types from a savepoint of the job: bootstrap with like=its operator",
            )
        return self.singleton(name)

    # ---- serializers ----------------------------------------------------------------------------

    def singleton(self, name: str) -> JavaObject:
        if name not in self.singletons:
            self.singletons[name] = _object(java.SINGLETONS[name])
        return self.singletons[name]

    def serializer(self, sql: SqlType) -> JavaObject:
        check_release(sql, self.form)
        match sql.root:
            case root if root in SINGLETONS:
                return self.singleton(SINGLETONS[root])
            case "DECIMAL":
                return _object(java.DECIMAL_DATA, precision=sql.precision, scale=sql.scale)
            case "TIMESTAMP" | "TIMESTAMP_LTZ":
                return _object(java.TIMESTAMP_DATA, precision=sql.precision)
            case "ARRAY":
                element = sql.parts[0][1]
                return _object(
                    java.ARRAY_DATA,
                    eleSer=self.serializer(element),
                    eleType=self.type(element),
                    elementGetter=self.element_getter(element),
                )
            case "MAP" | "MULTISET":
                (_, key), (_, value) = sql.parts
                return _object(
                    self.form.map_data,
                    keyGetter=self.element_getter(key),
                    keySerializer=self.serializer(key),
                    keyType=self.type(key),
                    valueGetter=self.element_getter(value),
                    valueSerializer=self.serializer(value),
                    valueType=self.type(value),
                )
            case "ROW" | "STRUCTURED":
                return self.row_serializer([t for _, t in sql.parts])
            case "DISTINCT":
                return self.serializer(sql.parts[0][1])
            case "RAW":
                return _object(java.RAW_DATA, serializer=self.raw_serializer(sql))
        raise UnsupportedError(f"Flink has no serializer for {sql}")

    def row_serializer(self, types: Sequence[SqlType]) -> JavaObject:
        fixed = (len(types) + 71) // 64 * 8 + 8 * len(types)
        return _object(
            java.ROW_DATA,
            binarySerializer=_object(java.BINARY_ROW_DATA, fixedLengthPartSize=fixed, numFields=len(types)),
            fieldGetters=JavaArray(java.FIELD_GETTERS, [self.field_getter(t, i) for i, t in enumerate(types)]),
            fieldSerializers=JavaArray(java.SERIALIZERS, [self.serializer(t) for t in types]),
            types=JavaArray(java.TYPES, [self.type(t) for t in types]),
        )

    # ---- getters --------------------------------------------------------------------------------

    def field_getter(self, sql: SqlType, at: int) -> JavaObject:
        match sql.root:
            case "DECIMAL":
                inner = self.field_lambda("89bd9445$1", at, sql.precision, sql.scale)
            case "TIMESTAMP" | "TIMESTAMP_LTZ":
                inner = self.field_lambda("39385f9c$1", at, sql.precision)
            case "ROW" | "STRUCTURED":
                inner = self.field_lambda("1547cee5$1", at, len(sql.parts))
            case "DISTINCT":
                inner = self.field_getter(sql.parts[0][1], at)
            case root:
                inner = self.field_lambda(f"245ca7d1${_FIELD_LAMBDAS[root]}", at)
        if sql.nullable or self.form.wraps_all_getters:
            return self.field_lambda("25774257$1", at, inner)
        return inner

    def field_lambda(self, name: str, *captured: int | JavaObject) -> JavaObject:
        row, getter = java.signature(java.DATA + "RowData"), java.signature(java.DATA + "RowData$FieldGetter")
        captured_types = "".join("I" if isinstance(c, int) else getter for c in captured)
        return self.lambda_object(
            "RowData",
            "FieldGetter",
            "getFieldOrNull",
            f"({row})Ljava/lang/Object;",
            (_INVOKE_STATIC, f"lambda$createFieldGetter${name}", f"({captured_types}{row})Ljava/lang/Object;"),
            captured,
        )

    def element_getter(self, sql: SqlType) -> JavaObject:
        match sql.root:
            case "DECIMAL":
                inner = self.element_lambda("55d7a3db$1", sql.precision, sql.scale)
            case "TIMESTAMP" | "TIMESTAMP_LTZ":
                inner = self.element_lambda("644eb446$1", sql.precision)
            case "ROW" | "STRUCTURED":
                inner = self.element_lambda("3705b7fb$1", len(sql.parts))
            case "DISTINCT":
                inner = self.element_getter(sql.parts[0][1])
            case root:
                method, result = _ELEMENT_METHODS[root]
                # A method reference that captures nothing is one object, wherever it is used.
                if method not in self.methods:
                    self.methods[method] = self.element_method(_INVOKE_INTERFACE, method, f"(I){result}", ())
                inner = self.methods[method]
        if sql.nullable or self.form.wraps_all_getters:
            return self.element_lambda("95d74a6c$1", inner)
        return inner

    def element_lambda(self, name: str, *captured: int | JavaObject) -> JavaObject:
        array, getter = java.signature(java.DATA + "ArrayData"), java.signature(java.DATA + "ArrayData$ElementGetter")
        captured_types = "".join("I" if isinstance(c, int) else getter for c in captured)
        method_signature = f"({captured_types}{array}I)Ljava/lang/Object;"
        return self.element_method(_INVOKE_STATIC, f"lambda$createElementGetter${name}", method_signature, captured)

    def element_method(
        self, invoked: int, name: str, method_signature: str, captured: Sequence[int | JavaObject]
    ) -> JavaObject:
        signature = f"({java.signature(java.DATA + 'ArrayData')}I)Ljava/lang/Object;"
        method = (invoked, name, method_signature)
        return self.lambda_object("ArrayData", "ElementGetter", "getElementOrNull", signature, method, captured)

    def lambda_object(
        self,
        owner: str,
        interface: str,
        method: str,
        interface_signature: str,
        implemented: tuple[int, str, str],
        captured: Sequence[int | JavaObject],
    ) -> JavaObject:
        """Return a lambda of an interface inside ``owner``; ``implemented`` is its invocation kind, name and signature."""
        invoked, name, signature = implemented
        path = (java.DATA + owner).replace(".", "/")
        return _object(
            java.LAMBDA,
            implMethodKind=invoked,
            capturedArgs=JavaArray(java.OBJECTS, [self.boxed(c) if isinstance(c, int) else c for c in captured]),
            capturingClass=java.plain_class(java.DATA + owner),
            functionalInterfaceClass=f"{path}${interface}",
            functionalInterfaceMethodName=method,
            functionalInterfaceMethodSignature=interface_signature,
            implClass=path,
            implMethodName=name,
            implMethodSignature=signature,
            instantiatedMethodType=interface_signature,
        )

    def boxed(self, number: int) -> JavaObject:
        """``Integer.valueOf``, which shares the objects of small numbers."""
        if number not in _INT_CACHE:
            return _object(java.INTEGER, value=number)
        if number not in self.ints:
            self.ints[number] = _object(java.INTEGER, value=number)
        return self.ints[number]


def check_release(sql: SqlType, form: java.StreamForm) -> None:
    """Raise an error for types that a release does not have.

    Raises
    ------
    UnsupportedError
        The type was added later.
    """
    since = {"VARIANT": (2, 1), "BITMAP": (2, 3)}.get(sql.root, (1, 13))
    if form.release < since:
        raise UnsupportedError(f"{sql.root} is a type of Flink {since[0]}.{since[1]} and later")
