"""Calls of Flink's API in the code of a job: state descriptors, windows and patterns with their constant arguments, and types of records and keys.

A job declares states by calls such as ``new ValueStateDescriptor<>("sum", Types.INT)`` or ``TumblingEventTimeWindows.of(Duration.ofSeconds(10))``. The
instructions are read in the order of the class file, and branches are not followed: a call shows what the code can do, never that it does.

No snapshot stores the types of records. Flink takes them from ``returns(Types.TUPLE(Types.STRING, Types.INT))``, from ``implements MapFunction<String,
Order>``, or from the descriptor of a lambda. Which of them belongs to which operator, only the data tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from statetool.io.cursor import Cursor
from statetool.java.classes.bytecode import CALLS, Opcode, instructions
from statetool.java.classes.class_file import FINAL, SYNTHETIC, ClassConstant, ClassFile, Member, MemberReference
from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.code_text import constant_text, lambda_target, reached_code
from statetool.java.classes.signatures import GenericType, class_signature, parse_parameters
from statetool.java.classes.type_extraction import extract_argument, extract_generic
from statetool.types.flink_calls import COMPUTED, LAMBDA, OF_TYPES, FlinkCall
from statetool.types.type_information import TypeInformation, kryo
from statetool.types.type_names import basic_type

_FLINK: Final = "org.apache.flink."
#: Loads of variables, of fields of an object, and of elements of an array.
_LOADS: Final = (*range(Opcode.ILOAD, Opcode.ISTORE), Opcode.GETFIELD)
_VARIABLES: Final = range(Opcode.ILOAD, Opcode.IALOAD)
_STORES: Final = range(Opcode.ISTORE, Opcode.POP)
_POPS: Final = (Opcode.POP, Opcode.POP2)
_JUMPS: Final = (
    *range(Opcode.IFEQ, Opcode.RET),
    Opcode.TABLESWITCH,
    Opcode.LOOKUPSWITCH,
    Opcode.IFNULL,
    Opcode.IFNONNULL,
    Opcode.GOTO_W,
)
_RETURNS: Final = (*range(Opcode.IRETURN, Opcode.GETSTATIC), Opcode.ATHROW)
#: What ends a chain of calls.
_BREAKS: Final = frozenset((*_STORES, *_POPS, *_JUMPS, *_RETURNS, Opcode.PUTSTATIC, Opcode.PUTFIELD))
#: Index of the method of a lambda among the arguments of its bootstrap method.
_IMPLEMENTATION: Final = 1
#: Hex digits by which lambdas are told apart.
_DIGITS: Final = 8
#: Methods of the job whose code is part of the hash of a lambda, and of that of the code that builds streams.
_MOST_METHODS: Final = 100
_MOST_BUILDING: Final = 3000
#: Ends of the names of Flink's classes of types, and of the descriptors of methods that return one.
_TYPES: Final = ("TypeInfo", "TypeInformation", "Serializer")
_GIVES_TYPE: Final = tuple(f"{name};" for name in _TYPES)
_BUILDS: Final = ("org.apache.flink.streaming.api.datastream.", "org.apache.flink.streaming.api.environment.")
_STREAMS: Final = "Lorg/apache/flink/streaming/api/"
_STATES: Final = "Lorg/apache/flink/api/common/state/"
_STATE_CLASSES: Final = "org.apache.flink.api.common.state."
_OF_HINT: Final = "getTypeInfo"
#: Types in static final fields, by class and field.
_Constants = dict[str, dict[str, str]]
_HINT: Final = "org.apache.flink.api.common.typeinfo.TypeHint"
_HINT_TEXT: Final = "TypeHint"
_KEY_SELECTOR: Final = "org.apache.flink.api.java.functions.KeySelector"
#: Index of the type of a lambda's method among the arguments of ``LambdaMetafactory``.
_OF_LAMBDA: Final = 2
_TUPLE: Final = "org.apache.flink.api.java.tuple.Tuple"
#: An array without elements.
_ARRAY: Final = "[]"
#: Pushes of indexes, duplicates, stores into an array, and new objects: what stands between the types of a call.
_NEUTRAL: Final = (*range(Opcode.ICONST_M1, Opcode.LDC), Opcode.AASTORE, Opcode.DUP, Opcode.NEW)
_MOST_CLASSES: Final = 20_000


def find_calls(class_path: ClassPath) -> Iterator[FlinkCall]:
    """Yield the calls of Flink in the code of all classes that are not of Flink, and those of the job's own methods that get types.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    own = [name for name in class_path.declaring if not name.startswith(_FLINK)]
    constants: _Constants = {}
    # Subclasses give types to the constructors of classes that declare states.
    below = {sub for name in own for sub in class_path.subclasses(name)}
    for name in dict.fromkeys((*own, *sorted(below))):
        if (cls := class_path.read(name)) is not None:
            for method in cls.methods:
                calls = list(_calls_of(class_path, cls, method, constants))
                yield from calls
                if any(c.owner.startswith(_BUILDS) for c in calls):
                    code = _code_hash(class_path, MemberReference(cls.name, method.name, method.descriptor))
                    yield FlinkCall(cls.name, method.name, (code,), f"{cls.name}.{method.name}", use="builds")


def _calls_of(class_path: ClassPath, cls: ClassFile, method: Member, constants: _Constants) -> Iterator[FlinkCall]:
    #: Arguments since the last call of Flink, and those of the objects under construction around them.
    pushed: list[str] = []
    outer: list[tuple[str, list[str]]] = []
    place = f"{cls.name}.{method.name}"
    #: The name of the state that was declared last is ``named``.
    branches, named = False, ""
    #: How many arguments the last instruction pushed, ``None`` if that is not known.
    last: int | None = None
    for operation, operands in instructions(method.code):
        branches = branches or operation in _JUMPS
        before_it, last = last, _pushes(operation, last)
        if operation == Opcode.NEW:
            outer.append((cls.constants.class_name(operands.u2()), pushed))
            pushed = []
        elif operation in CALLS:
            called = cls.constants.member(operands.u2())
            is_flink = called.owner.startswith(_FLINK)
            if not is_flink:
                yield from _own_calls(called, pushed, place)
            if called.name == "<init>" and outer and outer[-1][0] == called.owner:
                if is_flink:
                    yield FlinkCall(called.owner, called.name, tuple(pushed), place, branches)
                    branches = False
                    named = pushed[0] if called.owner.startswith(_STATE_CLASSES) and pushed else ""
                _, before = outer.pop()
                if not is_flink and (code := _key_hash(class_path, called.owner)):
                    yield FlinkCall(called.owner, called.name, (code,), place, use="keys")
                made = _constructed(class_path, called.owner, pushed)
                pushed, last = [*before, *made], len(made)
            elif is_flink and operation == Opcode.INVOKESTATIC and called.descriptor.endswith(_GIVES_TYPE):
                kept, arguments = _split(pushed, _count(called))
                yield FlinkCall(called.owner, called.name, tuple(arguments), place, branches)
                branches = False
                pushed = [*kept, f"{_simple(called.owner)}.{called.name}({', '.join(arguments)})"]
            elif is_flink:
                # A constructor of a subclass begins with that of its superclass.
                is_super = called.name == "<init>" and method.name == "<init>" and called.owner == cls.superclass
                yield FlinkCall(called.owner, called.name, tuple(pushed[is_super:]), place, branches, _count(called))
                is_within = bool(outer) and outer[-1][0].startswith(_FLINK)
                pushed, branches = _type_of_receiver(called, pushed, before_it) or [COMPUTED] * is_within, False
            elif operation == Opcode.INVOKESTATIC and called.owner.startswith("java."):
                pushed.append(f"{_simple(called.owner)}.{called.name}")
            elif called.name != _OF_HINT or pushed[-1:] != [hint_of(class_path, called.owner)]:
                pushed = [*pushed, COMPUTED]
        elif operation == Opcode.ANEWARRAY:
            pushed[-1:] = [_ARRAY]  # instead of its length
        elif operation == Opcode.AASTORE and _store(pushed):
            pass
        elif operation in _STORES or operation in (Opcode.PUTFIELD, Opcode.PUTSTATIC):
            field = cls.constants.member(operands.u2()) if operation not in _STORES else None
            if field is not None:
                yield from _stored(field, named, pushed, place)
                named = "" if _STATES in field.descriptor else named
            pushed = []
        elif operation == Opcode.ARETURN:
            yield from _kept_type(cls.name, "return", pushed, place)
        elif (argument := _argument(class_path, cls, operation, operands, constants)) is not None:
            pushed.append(argument)


def _constructed(class_path: ClassPath, name: str, arguments: list[str]) -> list[str]:
    """Return what a constructor pushes: a type of Flink, an object of the job and its arguments, nothing for other objects of Flink."""
    if name.startswith(_FLINK):
        return [f"{_simple(name)}({', '.join(arguments)})"] if name.endswith(_TYPES) else []
    hint = hint_of(class_path, name)
    return [hint] if hint else [_named(class_path, name), *arguments]


def _stored(field: MemberReference, named: str, pushed: list[str], place: str) -> Iterator[FlinkCall]:
    """Yield the state, or the type, that code stores in a field."""
    if named and _STATES in field.descriptor:
        yield FlinkCall(field.owner, field.name, (named,), place, use="fields")
    yield from _kept_type(field.owner, field.name, pushed, place)


def _kept_type(owner: str, name: str, pushed: list[str], place: str) -> Iterator[FlinkCall]:
    """Yield the type that code stores in a field of the job, or that a method of it returns."""
    if pushed and _names_type(pushed[-1]):
        yield FlinkCall(owner, name, (pushed[-1],), place, use="types")


def _type_of_receiver(called: MemberReference, pushed: list[str], last: int | None) -> list[str]:
    """Return what is pushed up to the type for which Flink returns the serializer or the type of a hint; empty for other calls.

    Parameters
    ----------
    last
        How many arguments the instruction before the call pushed.
    """
    if called.name == _OF_HINT and called.owner == _HINT:
        last = 0
    elif called.name != "createSerializer" or not called.owner.endswith(_TYPES) or last is None:
        return []
    found = pushed[: len(pushed) - last]
    return found if found and _names_type(found[-1]) else []


def _pushes(operation: int, last: int | None) -> int | None:
    """Return how many arguments an instruction pushes, ``None`` unless it is a null or a variable. Casts push what was pushed before."""
    if operation == Opcode.CHECKCAST:
        return last
    return 0 if operation == Opcode.ACONST_NULL else 1 if operation in _VARIABLES else None


def _split(pushed: list[str], count: int) -> tuple[list[str], list[str]]:
    """Return what is pushed before the arguments of a call, and the arguments. Those that calls of Flink hide are computed."""
    at = max(0, len(pushed) - count)
    return pushed[:at], [COMPUTED] * (count - len(pushed)) + pushed[at:]


def _count(called: MemberReference) -> int:
    return len(parse_parameters(called.descriptor)[0])


def _own_calls(called: MemberReference, pushed: list[str], place: str) -> Iterator[FlinkCall]:
    """Yield a call of the job's own method once for each use of what it gets."""
    if types := tuple(filter(_names_type, pushed)):
        yield FlinkCall(called.owner, called.name, types, place, use="types")
    if _STREAMS in called.descriptor:
        yield FlinkCall(called.owner, called.name, tuple(pushed), place, use="streams")
    if _STATES in called.descriptor:
        yield FlinkCall(called.owner, called.name, tuple(pushed), place, use="states")


def _store(pushed: list[str]) -> bool:
    """Put an element into the array that code is filling. Return False if there is none."""
    # An array behind which only an element or its index stands is that element.
    at = next((n for n in range(len(pushed) - 3, -1, -1) if pushed[n].startswith(_ARRAY[0])), None)
    if at is None:
        return False
    elements, value = pushed[at][1:-1], pushed[at + 2 :]
    text = value[0] if len(value) == 1 else COMPUTED
    pushed[at:] = [f"[{elements}, {text}]" if elements else f"[{text}]"]
    return True


def _names_type(text: str) -> bool:
    return (
        text.endswith(".class")
        or text.startswith(("Types.", "TypeInformation.", _HINT_TEXT, "[Types."))
        or basic_type(text) is not None
        or text.partition("(")[0].endswith(_TYPES)
    )


def hint_of(class_path: ClassPath, name: str) -> str:
    """Return the type of an anonymous ``TypeHint``, empty for other classes."""
    cls = class_path.read(name) if "$" in name else None
    if cls is None or cls.superclass != _HINT:
        return ""
    return f"{_HINT_TEXT}<{', '.join(map(_text, class_signature(cls).superclass.args))}>"


def _argument(
    class_path: ClassPath, cls: ClassFile, operation: int, operands: Cursor, constants: _Constants
) -> str | None:
    """Return the text of an argument that an instruction pushes, ``None`` if it pushes none."""
    if (constant := constant_text(cls, operation, operands, full_names=True)) is not None:
        return constant
    if operation == Opcode.GETSTATIC:
        member = cls.constants.member(operands.u2())
        text = f"{_simple(member.owner)}.{member.name}"
        if member.owner.startswith((_FLINK, "java.")):
            return text
        # Another field of the job may have any value.
        return _constant_types(class_path, member.owner, constants).get(member.name, COMPUTED + text)
    if operation == Opcode.INVOKEDYNAMIC:
        return _lambda(class_path, cls, operands.u2())
    return COMPUTED if operation in _LOADS else None


def _constant_types(class_path: ClassPath, name: str, constants: _Constants) -> dict[str, str]:
    """Return the types in static final fields of a class, as far as its initializer sets each without a branch."""
    if name in constants:
        return constants[name]
    # A field that the initializer itself reads has no value yet.
    constants[name] = {}
    cls = class_path.read(name)
    code = None if cls is None else next((m for m in cls.methods if m.name == "<clinit>"), None)
    if cls is None or code is None or any(operation in _JUMPS for operation, _ in instructions(code.code)):
        return {}
    fixed = {f.name for f in cls.fields if f.access & FINAL}
    calls = _calls_of(class_path, cls, code, constants)
    set_types = [c for c in calls if c.use == "types" and c.owner == name and c.name in fixed]
    constants[name] = {c.name: c.arguments[0] for c in set_types if COMPUTED not in c.arguments[0]}
    return constants[name]


def _lambda(class_path: ClassPath, cls: ClassFile, index: int) -> str:
    """Return the text of a lambda: the hash of its code, as its name has a number, which changes with other code; or a method."""
    bootstrap, _, _ = cls.constants.dynamic(index)
    linked = cls.bootstraps[bootstrap] if bootstrap < len(cls.bootstraps) else None
    if (
        linked is None
        or not linked.method.owner.endswith("LambdaMetafactory")
        or len(linked.arguments) < _IMPLEMENTATION + 1
    ):
        return COMPUTED
    target = cls.constants.method_handle(linked.arguments[_IMPLEMENTATION])
    body = next((m for m in cls.methods if (m.name, m.descriptor) == (target.name, target.descriptor)), None)
    if target.owner != cls.name or body is None or not body.access & SYNTHETIC:
        code = _code_hash(class_path, target)
        return f"{_simple(target.owner)}::{target.name}{f' {code}' if code else ''}"
    types = cls.constants.method_type(linked.arguments[_OF_LAMBDA]) if len(linked.arguments) > _OF_LAMBDA else ""
    return f"{LAMBDA} {_code_hash(class_path, target)}{OF_TYPES}{types}"


def _code_hash(class_path: ClassPath, first: MemberReference) -> str:
    """Return a hash of the code of a method and of the code of the job that it may run; empty if the job does not have it."""
    return "" if first.owner.startswith(_FLINK) else reached_code(class_path, [first], most=_MOST_METHODS)[:_DIGITS]


def find_building_code(class_path: ClassPath) -> str:
    """Return a hash of all code that may decide how streams are built and which states are declared.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    calls: dict[MemberReference, set[MemberReference]] = {}
    found: set[MemberReference] = set()
    for cls in _own_classes(class_path):
        for method in cls.methods:
            own = MemberReference(cls.name, method.name, method.descriptor)
            calls[own] = set(_called(cls, method))
            if any(_decides(one) for one in calls[own]):
                found.add(own)
    # Those that call them may give them arguments. Which class an object has, is not known.
    while True:
        names = {_call_key(one) for one in found}
        above = {
            own for own, called in calls.items() if own not in found and any(_call_key(c) in names for c in called)
        }
        if not above:
            break
        found |= above
    return reached_code(class_path, sorted(found, key=str), most=_MOST_BUILDING, loads=True)


def _call_key(called: MemberReference) -> tuple[str, ...]:
    is_constructor = called.name[0] == "<"
    return (called.owner if is_constructor else "", called.name, called.descriptor)


def _decides(called: MemberReference) -> bool:
    """Return True for a call of Flink that builds a stream or declares a state."""
    is_descriptor = called.owner.startswith(_STATE_CLASSES) and called.owner.endswith("Descriptor")
    return called.owner.startswith(_BUILDS) or is_descriptor


def _called(cls: ClassFile, method: Member) -> Iterator[MemberReference]:
    for operation, operands in instructions(method.code):
        if operation in CALLS:
            yield cls.constants.member(operands.u2())
        elif operation == Opcode.INVOKEDYNAMIC and (target := lambda_target(cls, operands.u2())) is not None:
            yield target


def _key_hash(class_path: ClassPath, name: str) -> str:
    """Return a hash of the code with which a class selects keys; empty for other classes."""
    if _KEY_SELECTOR not in class_path.supertypes(name):
        return ""
    cls = class_path.read(name)
    methods = [] if cls is None else [m for m in cls.methods if m.name == "getKey"]
    return "".join(_code_hash(class_path, MemberReference(name, m.name, m.descriptor)) for m in methods)


def _named(class_path: ClassPath, name: str) -> str:
    """Return the name of a class of the job: without its package, unless another class has that name, too.

    A type or serializer of the job is computed: its code decides which one it is.
    """
    shown = name if _simple(name) in class_path.homonyms else _simple(name)
    is_type = any(n.startswith(_FLINK) and n.endswith(_TYPES) for n in class_path.supertypes(name))
    return f"{COMPUTED}{shown}" if is_type else shown


def _simple(name: str) -> str:
    return name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class NamedType:
    """A type as code names it: ``name`` is the same for the same expression in two jars."""

    name: str
    type: TypeInformation


def find_record_types(class_path: ClassPath, major: Literal[1, 2]) -> dict[str, TypeInformation]:
    """Return the types of records that the code of a job names, by their text.

    Parameters
    ----------
    major
        The major version of Flink, whose type extraction makes the serializers.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    found: dict[str, TypeInformation] = {}
    generics = dict.fromkeys(_generic_types(class_path))
    for generic in generics:
        found[_text(generic)] = extract_generic(class_path, generic, major)
    for cls in _own_classes(class_path):
        for method in cls.methods:
            made = (call.made for call in _calls(class_path, cls, method, major))
            found.update((one.name, one.type) for one in made if one is not None)
    return {name: found[name] for name in sorted(found) if found[name].is_settled}


def function_types(class_path: ClassPath) -> dict[str, tuple[str, ...]]:
    """Return the type arguments of each class of the job that extends or implements one of Flink's: functions, sources and type hints.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    return {name: tuple(map(_text, types)) for name, types in _types_of_functions(class_path)}


def _types_of_functions(class_path: ClassPath) -> Iterator[tuple[str, tuple[GenericType, ...]]]:
    direct = [name for name in class_path.extending(_FLINK)[:_MOST_CLASSES] if not name.startswith(_FLINK)]
    below = {sub for name in direct for sub in class_path.subclasses(name)}
    for name in dict.fromkeys((*direct, *sorted(below))):
        if (cls := class_path.read(name)) is not None:
            signature = class_signature(cls)
            yield name, tuple(a for t in (signature.superclass, *signature.interfaces) for a in t.args)


def _generic_types(class_path: ClassPath) -> Iterator[GenericType]:
    """Yield the type arguments of functions, sources and type hints, and the types of lambdas."""
    for _, types in _types_of_functions(class_path):
        yield from filter(_is_closed, types)
    for cls in _own_classes(class_path):
        for descriptor in cls.constants.method_types():
            parameters, result = parse_parameters(descriptor)
            yield from (t for t in (*parameters, result) if t is not None and _is_closed(t) and not _is_of_flink(t))


def _is_closed(generic: GenericType) -> bool:
    """Return True if a type has neither variables nor wildcards, and is not erased."""
    return (
        generic.kind in ("class", "array") and generic.name != "java.lang.Object" and all(map(_is_closed, generic.args))
    )


def _is_of_flink(generic: GenericType) -> bool:
    return generic.name.startswith(_FLINK) and not generic.name.startswith(_TUPLE)


def _text(generic: GenericType) -> str:
    if generic.kind == "array":
        return f"{_text(generic.args[0])}[]"
    return f"{generic.name}<{', '.join(map(_text, generic.args))}>" if generic.args else generic.name


@dataclass(frozen=True, slots=True)
class _Selector:
    """A function that selects keys, and the type of the keys, ``None`` if it does not tell."""

    key: TypeInformation | None


@dataclass(frozen=True, slots=True)
class _Text:
    text: str


#: What instructions push: the name of a class constant, a text, a type, a selector of keys, or ``None`` for the beginning of an array.
_Pushed = list["str | _Text | NamedType | _Selector | None"]


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of Flink, what was pushed since the last other instruction, and the type that the call creates.

    ``is_chained`` unless a result was stored or dropped, or the code branches, since the call before it.
    """

    called: MemberReference
    pushed: _Pushed
    made: NamedType | None
    is_chained: bool


def find_key_types(class_path: ClassPath, major: Literal[1, 2]) -> dict[str, TypeInformation]:
    """Return the types of the keys of operators, by their constant uids, as far as one chain of calls has ``keyBy`` and ``uid``.

    Raises
    ------
    FormatError
        A class file is damaged.
    """
    found: dict[str, set[TypeInformation | None]] = {}
    for cls in _own_classes(class_path):
        for method in cls.methods:
            key: TypeInformation | None = None
            for call in _calls(class_path, cls, method, major):
                last = call.pushed[-1] if call.pushed else None
                if not call.is_chained or call.called.name == "reinterpretAsKeyedStream":
                    key = None
                if call.called.name == "keyBy":
                    is_typed = "TypeInformation" in call.called.descriptor
                    key = last.key if isinstance(last, _Selector) and not is_typed else None
                    key = last.type if isinstance(last, NamedType) and is_typed else key
                elif call.called.name == "uid":
                    if isinstance(last, _Text):
                        found.setdefault(last.text, set()).add(key)
                    key = None
    return {u: kind for u, kinds in found.items() if len(kinds) == 1 and (kind := kinds.pop()) and kind.is_settled}


def _own_classes(class_path: ClassPath) -> Iterator[ClassFile]:
    """Yield the classes whose code may use Flink's API, without Flink's own."""
    for name in class_path.declaring:
        cls = None if name.startswith(_FLINK) else class_path.read(name)
        if cls is not None:
            yield cls


def _calls(class_path: ClassPath, cls: ClassFile, method: Member, major: Literal[1, 2]) -> Iterator[_Call]:
    """Yield the calls of Flink in a method."""
    pushed: _Pushed = []
    is_chained = True
    for operation, operands in instructions(method.code):
        if operation in _BREAKS:
            is_chained = False
        if operation in (Opcode.LDC, Opcode.LDC_W):
            loaded = cls.constants.loaded(operands.u1() if operation == Opcode.LDC else operands.u2())
            pushed.append(
                loaded.name if isinstance(loaded, ClassConstant) else _Text(loaded) if isinstance(loaded, str) else None
            )
        elif operation == Opcode.GETSTATIC:
            member = cls.constants.member(operands.u2())
            basic = basic_type(f"{member.owner.rpartition('.')[2]}.{member.name}")
            is_basic = basic is not None and member.owner.startswith(_FLINK)
            pushed.append(_of_class(class_path, basic, major) if basic is not None and is_basic else None)
        elif operation == Opcode.INVOKEDYNAMIC:
            pushed = [_Selector(_lambda_result(class_path, cls, operands.u2(), major))]
        elif operation == Opcode.ANEWARRAY:
            pushed.append(None)
        elif operation in CALLS:
            called = cls.constants.member(operands.u2())
            if called.owner.startswith(_FLINK):
                made = _made(class_path, called.owner, called.name, pushed, major)
                yield _Call(called, pushed, made, is_chained)
                is_chained = True
                kept = [] if made is None else pushed[: _begin(pushed)] if called.name == "TUPLE" else pushed[:-1]
                pushed = [*kept, *([] if made is None else [made])]
            elif called.name == "<init>" and _KEY_SELECTOR in class_path.supertypes(called.owner):
                pushed = [_Selector(extract_argument(class_path, called.owner, _KEY_SELECTOR, 1, major))]
            else:
                pushed = []
        elif operation not in _NEUTRAL:
            pushed = []


def _lambda_result(class_path: ClassPath, cls: ClassFile, index: int, major: Literal[1, 2]) -> TypeInformation | None:
    """Return the type of the result of a lambda or method reference, ``None`` if it is generic."""
    bootstrap, _, _ = cls.constants.dynamic(index)
    arguments = cls.bootstraps[bootstrap].arguments if bootstrap < len(cls.bootstraps) else ()
    descriptor = cls.constants.method_type(arguments[_OF_LAMBDA]) if len(arguments) > _OF_LAMBDA else None
    _, result = parse_parameters(descriptor) if descriptor is not None else ((), None)
    return None if result is None or not _is_closed(result) else extract_generic(class_path, result, major)


def _begin(pushed: _Pushed) -> int:
    """Return the place of the array that is filled last."""
    return max((at for at, one in enumerate(pushed) if one is None), default=0)


def _made(class_path: ClassPath, owner: str, name: str, pushed: _Pushed, major: Literal[1, 2]) -> NamedType | None:
    """Return the type that a call of Flink creates."""
    simple, last = owner.rpartition(".")[2], pushed[-1] if pushed else None
    if simple == "Types" and name == "TUPLE":
        parts = [one for one in pushed[_begin(pushed) + 1 :] if isinstance(one, NamedType)]
        if not parts or len(parts) < len(pushed) - _begin(pushed) - 1:
            return None
        java_class = f"{_TUPLE}{len(parts)}"
        text = f"{java_class}<{', '.join(p.name for p in parts)}>"
        return NamedType(text, TypeInformation("tuple", java_class, parts=tuple(p.type for p in parts)))
    if not isinstance(last, str):
        return None
    if name == "returns" or (simple, name) in (
        ("TypeInformation", "of"),
        ("Types", "POJO"),
        ("TypeExtractor", "getForClass"),
    ):
        return _of_class(class_path, last, major)
    if (simple, name) in (("GenericTypeInfo", "<init>"), ("Types", "GENERIC")):
        return NamedType(f"generic {last}", kryo(last))
    return None


def _of_class(class_path: ClassPath, name: str, major: Literal[1, 2]) -> NamedType:
    return NamedType(name, extract_generic(class_path, GenericType("class", name), major))
