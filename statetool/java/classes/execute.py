"""Constructors, static initializers and methods, executed with known values to see whether they create an object, throw, or what they return.

Serializers create objects by a constructor without parameters, and records by their canonical constructor with the stored values. Results of
methods outside of the jar are not known, except of a few whose contract is simple: execution ends where they decide something.
Follows chapter 6 of the Java Virtual Machine Specification.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from statetool.io.cursor import Cursor
from statetool.java.classes.bytecode import Opcode, instructions
from statetool.java.classes.class_file import STATIC, ClassConstant, ClassFile, Member, MemberReference
from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.code_text import code_text
from statetool.java.classes.expressions import to_int32
from statetool.java.classes.signatures import parse_parameters
from statetool.types.execution import Boxed, Constant, Creation, Instance, Known, Result, Some
from statetool.types.java import BOXES
from statetool.types.java_hash import hash_bool, hash_double, hash_float, hash_long, hash_string

_MAX_STEPS: Final = 20_000
_MAX_DEPTH: Final = 40
_CONSTRUCTOR: Final = "<init>"
_INITIALIZER: Final = "<clinit>"
_HASH_CODE: Final = MemberReference("", "hashCode", "()I")
#: Primitives by descriptor.
_NAMES: Final = {
    "Z": "boolean",
    "B": "byte",
    "C": "char",
    "S": "short",
    "I": "int",
    "J": "long",
    "F": "float",
    "D": "double",
}
_TEXT: Final = "Ljava/lang/String;"
_CHECKS: Final = ("requireNonNull", "checkNotNull", "requireNonNullElse")
#: Methods of texts, which give the same as Python's for ASCII: Java counts units of UTF-16, and has other letters and spaces.
_TEXT_METHODS: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    ("charAt", "(I)C"): lambda s, i: ord(_within(s, i, i + 1)),
    ("substring", f"(I){_TEXT}"): lambda s, a: _within(s, a, len(s)),
    ("substring", f"(II){_TEXT}"): lambda s, a, b: _within(s, a, b),
    ("startsWith", f"({_TEXT})Z"): lambda s, t: int(s.startswith(t)),
    ("equalsIgnoreCase", f"({_TEXT})Z"): lambda s, t: int(s.lower() == t.lower()),
    ("toLowerCase", f"(){_TEXT}"): str.lower, ("toUpperCase", f"(){_TEXT}"): str.upper,
    ("length", "()I"): len, ("isEmpty", "()Z"): lambda s: int(not s), ("isBlank", "()Z"): lambda s: int(not s.strip()),
    ("trim", f"(){_TEXT}"): lambda s: s.strip("".join(map(chr, range(33)))), ("strip", f"(){_TEXT}"): str.strip,
}  # fmt: skip
_COMPARISONS: Final[tuple[Callable[[int, int], bool], ...]] = (
    lambda a, b: a == b, lambda a, b: a != b, lambda a, b: a < b, lambda a, b: a >= b, lambda a, b: a > b, lambda a, b: a <= b,
)  # fmt: skip


class Thrown(Exception):
    """A Java exception. The message continues the name of a class."""


class AddressHash(Exception):
    """A hash code that depends on the address of an object, which differs in each process. The message is the type of the object."""


class Unfollowed(Exception):
    """An instruction whose result is not known. The message continues the name of a class."""


def create(path: ClassPath, name: str, descriptor: str | None, arguments: Sequence[Any] = ()) -> Creation:
    """Create an object of a class by the constructor with a descriptor, or without one, as Objenesis does."""
    machine = Machine(path)
    made = Instance(name)
    try:
        machine.initialize(name)
        cls = path.read(name)
        if cls is not None and descriptor is not None:
            found = _method(cls, _CONSTRUCTOR, descriptor)
            if found is not None:
                machine.run(cls, found, [made, *arguments], 0)
    except Thrown as error:
        return Creation(fails=str(error), visited=frozenset(machine.visited))
    except Unfollowed as error:
        machine.unfollowed.append(str(error))
    return Creation(unknown=next(iter(machine.unfollowed), ""), visited=frozenset(machine.visited), fields=made.fields)


def hash_code(path: ClassPath, value: Any) -> Result:
    """Return the result of ``hashCode()`` of a value."""
    return _result(path, lambda machine: machine.hash_of(value, 0))


def equals(path: ClassPath, value: Instance, other: Instance) -> Result:
    """Return the result of ``equals`` of two objects."""
    return _result(
        path,
        lambda machine: machine.call(value, MemberReference(value.cls, "equals", "(Ljava/lang/Object;)Z"), [other], 0),
    )


def _result(path: ClassPath, run: Callable[[Machine], Any]) -> Result:
    machine = Machine(path)
    try:
        value = run(machine)
        if isinstance(value, Some):
            raise Unfollowed(f"depends on {value.origin}")
        return Result(value, visited=frozenset(machine.visited))
    except AddressHash as error:
        return Result(address=str(error), visited=frozenset(machine.visited))
    except (Thrown, Unfollowed) as error:
        return Result(unknown=str(error), visited=frozenset(machine.visited))


def _method(cls: ClassFile, name: str, descriptor: str) -> Member | None:
    return next((m for m in cls.methods if (m.name, m.descriptor) == (name, descriptor)), None)


class Machine:
    """Executes methods of the classes in jars. Subclasses say what comes from outside of them."""

    def __init__(self, path: ClassPath) -> None:
        self.path = path
        #: Why static initializers were not executed to their end.
        self.unfollowed: list[str] = []
        self.visited: set[tuple[str, str, int]] = set()
        self.statics: dict[tuple[str, str], Any] = {}
        #: Static fields that other methods than initializers set.
        self.assigned: set[tuple[str, str]] = set()
        self._initialized: set[str] = set()
        self._steps = self.frames = 0

    def initialize(self, name: str) -> None:
        """Run the static initializers of a class and its superclasses, once."""
        if name in self._initialized:
            return
        self._initialized.add(name)
        cls = self.path.read(name)
        if cls is None:
            return
        self.initialize(cls.superclass)
        for member in cls.fields:
            if member.access & STATIC:
                given = cls.constants.loaded(member.constant) if member.constant else _default(member.descriptor)
                self.statics[name, member.name] = given
        initializer = _method(cls, _INITIALIZER, "()V")
        if initializer is not None:
            try:
                self.run(cls, initializer, [], 0)
            except Thrown as error:
                raise Thrown(f"{error} (in the static initializer of {name})") from None
            except Unfollowed as reason:
                # The constructor is executed all the same, and may throw.
                self.unfollowed.append(str(reason))
                unknown = {place: Some(".".join(place), may_be_null=True) for place in self.statics if place[0] == name}
                self.statics |= unknown

    def decide(self, reason: str, count: int, site: tuple[object, ...]) -> int:
        """Return which of several ways code takes at a place where what decides is not known."""
        raise Unfollowed(reason)

    def check_null(self, value: Any, what: str) -> None:
        """Throw what Java throws if a reference is null."""
        if value is None:
            raise Thrown("throws java.lang.NullPointerException")
        if isinstance(value, Some) and value.may_be_null:
            raise Unfollowed(f"{what} {value.origin}")

    def is_same(self, a: Any, b: Any) -> bool:
        """Return True if two references are those of one object, which constants of enums and classes are."""
        if a is None or b is None:
            other = b if a is None else a
            if isinstance(other, Some) and other.may_be_null:
                raise Unfollowed(f"depends on {other.origin}")
            return a is b
        if isinstance(a, Constant | ClassConstant) and type(a) is type(b):
            return bool(a == b)
        if type(a) is type(b) and isinstance(a, Instance | list):
            return a is b
        raise Unfollowed("compares objects")

    def element_of(self) -> Any:
        """Return an element of an array of which the elements, or the index, are not known."""
        raise Unfollowed("reads an element of an array that is not known")

    def count(self) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise Unfollowed(f"executes more than {_MAX_STEPS:,} instructions")

    def run(self, cls: ClassFile, method: Member, arguments: Sequence[Any], depth: int) -> Any:
        """Return the result of a method."""
        self.visited.add((cls.name, f"{method.name}{method.descriptor}", hash(code_text(cls, method))))
        if not method.code:
            raise Unfollowed(f"calls {method.name}() of {cls.name}, which has no code in the jar")
        if depth > _MAX_DEPTH:
            raise Unfollowed(f"calls methods more than {_MAX_DEPTH} deep")
        try:
            return _Frame(self, cls, method, arguments, depth).run()
        except (IndexError, KeyError):
            # A place that does not exist: on the stack, or to jump to.
            raise Unfollowed(f"runs {method.name} of {cls.name}, whose code is not valid") from None
        except Thrown as error:
            if method.handlers:
                raise Unfollowed(f"{error}, which {method.name} of {cls.name} may catch") from None
            raise

    def call(self, receiver: Instance, method: MemberReference, arguments: Sequence[Any], depth: int) -> Any:
        """Return the result of a method of an object."""
        found = self.find(receiver.cls, method)
        if found is None:
            raise Unfollowed(f"calls {method.name}() of {receiver.cls}, which is not in the jar")
        return self.run(*found, [receiver, *arguments], depth + 1)

    def hash_of(self, value: Any, depth: int) -> int:
        """Return ``hashCode()`` of an object, 0 of null."""
        match value:
            case None:
                return 0
            case str():
                return hash_string(value)
            case Boxed():
                return _hash_of_number(BOXES[value.box], value.value)
            case Known():
                return value.hash_code
            case Constant():
                raise AddressHash(f"the enum {value.cls}")
            case list():
                raise AddressHash("an array")
            case ClassConstant():
                raise AddressHash("a class")
            case Instance():
                found = self.find(value.cls, _HASH_CODE)
                if found is None:
                    self.check_root(value.cls)
                    raise AddressHash(value.cls)
                result = self.run(*found, [value], depth + 1)
                if not isinstance(result, int):
                    raise Unfollowed(f"hashes {_shown(result)}")
                return result
        raise Unfollowed(f"hashes {_shown(value)}")

    def check_root(self, name: str) -> None:
        """Check that the jar has a class and all its superclasses but ``Object``."""
        seen: set[str] = set()
        while name != "java.lang.Object":
            cls = self.path.read(name)
            if cls is None or name in seen:
                raise Unfollowed(f"is that of {name}, which is not in the jar")
            seen.add(name)
            name = cls.superclass

    def hash_of_record(self, cls: ClassFile, value: Instance, depth: int) -> int:
        """Return the hash code of a record that does not override it (``ObjectMethods``)."""
        total = 0
        for member in components_of(cls):
            part = value.fields.get(member.name, _default(member.descriptor))
            name = _NAMES.get(member.descriptor)
            total = to_int32(31 * total + (self.hash_of(part, depth) if name is None else _hash_of_number(name, part)))
        return total

    def find(self, name: str, method: MemberReference) -> tuple[ClassFile, Member] | None:
        """Return a method of a class in the jar or of its superclasses, ``None`` if none in the jar has it."""
        seen: set[str] = set()
        todo = [name]
        while todo:
            cls = self.path.read(todo.pop(0))
            if cls is None or cls.name in seen:
                continue
            seen.add(cls.name)
            if (found := _method(cls, method.name, method.descriptor)) is not None and found.code:
                return cls, found
            todo += [cls.superclass, *cls.interfaces]
        return None

    def new(self, name: str) -> Any:
        """Return an object of a class outside of the jars, before its constructor runs."""
        return Some(f"a {name}")

    def constant(self, member: MemberReference) -> Any:
        """Return the value of a static field outside of the jars."""
        return Some(f"{member.owner}.{member.name}")

    def link(self, cls: ClassFile, index: int, captured: list[Any]) -> Any:
        """Return the result of ``invokedynamic``: a lambda, or a joined text."""
        return Some(f"the result of {cls.constants.dynamic(index)[1]}")

    def call_outside(self, op: int, method: MemberReference, receiver: Any, arguments: list[Any], depth: int) -> Any:
        """Return the result of a method outside of the jars."""
        if op == Opcode.INVOKESTATIC:
            return _static_result(self, method, arguments, depth)
        if isinstance(receiver, Instance):
            if method.name == _CONSTRUCTOR and not arguments:
                return None
            if op == Opcode.INVOKESPECIAL and method.name == "hashCode":
                self.check_root(receiver.cls)
                raise AddressHash(receiver.cls)
            if method.name == "getClass":
                return ClassConstant(receiver.cls)
        if (method.name, method.descriptor) == ("hashCode", "()I") and not (
            isinstance(receiver, Some) and not isinstance(receiver, Known)
        ):
            return self.hash_of(receiver, depth)
        if isinstance(receiver, ClassConstant) and method.name == "getName":
            return receiver.name
        if isinstance(receiver, Constant) and method.name in ("name", "ordinal", "toString"):
            return receiver.ordinal if method.name == "ordinal" else receiver.name
        if isinstance(receiver, str) and method.name in ("toString", "intern") and not arguments:
            return receiver
        of_text = _TEXT_METHODS.get((method.name, method.descriptor))
        texts = (receiver, *(a for a in arguments if not isinstance(a, int)))
        if of_text is not None and all(isinstance(t, str) and t.isascii() for t in texts):
            return of_text(receiver, *arguments)
        if isinstance(receiver, str) and method.name == "equals" and isinstance(arguments[0], str | None):
            return int(receiver == arguments[0])
        if isinstance(receiver, Boxed) and method.name.endswith("Value"):
            return receiver.value
        _check_known([receiver, *arguments], method)
        return Some(f"the result of {method.owner}.{method.name}()", may_be_null=True)


def _default(descriptor: str) -> Any:
    if descriptor[0] in "L[":
        return None
    return 0.0 if descriptor in "FD" else 0


class _Frame:
    """One run of one method."""

    def __init__(self, machine: Machine, cls: ClassFile, method: Member, arguments: Sequence[Any], depth: int) -> None:
        self._machine = machine
        machine.frames += 1
        self._number = machine.frames
        self._cls = cls
        self._method = method
        self._depth = depth
        self._locals: dict[int, Any] = {}
        self._stack: list[Any] = []
        self._result: Any = None
        self._wide: set[int] = set()
        self._code = [(operands.pos - 1, op, operands) for op, operands in instructions(method.code)]
        self._at = {pos: i for i, (pos, _, _) in enumerate(self._code)}
        kinds = [k.name for k in parse_parameters(method.descriptor)[0]]
        place = 0
        for i, value in enumerate(arguments):
            self._locals[place] = value
            kind = kinds[i - (len(arguments) - len(kinds))] if i >= len(arguments) - len(kinds) else ""
            place += 2 if kind in ("long", "double") else 1

    def run(self) -> Any:
        i = 0
        while True:
            if i >= len(self._code):
                raise Unfollowed("ends without a return")
            self._machine.count()
            pos, op, operands = self._code[i]
            c = Cursor(operands.data, operands.pos, operands.end)
            if Opcode.IRETURN <= op <= Opcode.RETURN:
                return None if op == Opcode.RETURN else self._stack.pop()
            jump = self._step(pos, op, c)
            i = i + 1 if jump is None else self._at[jump]

    def _step(self, pos: int, op: int, c: Cursor) -> int | None:
        push = self._stack.append
        match op:
            case Opcode.NOP:
                pass
            case Opcode.ACONST_NULL:
                push(None)
            case _ if op <= Opcode.DCONST_1:
                push(_number_of(op))
            case Opcode.BIPUSH | Opcode.SIPUSH:
                push(c.i1() if op == Opcode.BIPUSH else c.i2())
            case Opcode.LDC | Opcode.LDC_W | Opcode.LDC2_W:
                loaded = self._cls.constants.loaded(c.u1() if op == Opcode.LDC else c.u2())
                push(Some("a constant") if loaded is None else loaded)
            case _ if op <= Opcode.ALOAD:
                push(self._locals.get(c.u1()))
            case _ if op <= Opcode.ALOAD_3:
                push(self._locals.get((op - Opcode.ILOAD_0) % 4))
            case _ if op <= Opcode.SALOAD:
                self._load_element(op)
            case _ if op <= Opcode.ASTORE:
                self._locals[c.u1()] = self._stack.pop()
            case _ if op <= Opcode.ASTORE_3:
                self._locals[(op - Opcode.ISTORE_0) % 4] = self._stack.pop()
            case _ if op <= Opcode.SASTORE:
                self._store_element()
            case Opcode.POP:
                self._stack.pop()
            case Opcode.DUP:
                push(self._stack[-1])
            case Opcode.DUP_X1:
                a, b = self._stack.pop(), self._stack.pop()
                self._stack += [a, b, a]
            case _ if Opcode.IADD <= op <= Opcode.DCMPG:
                self._number_step(op, c)
            case _ if op <= Opcode.GOTO or op in (Opcode.IFNULL, Opcode.IFNONNULL):
                return self._branch(pos, op, c)
            case _ if Opcode.GETSTATIC <= op <= Opcode.PUTFIELD:
                self._access(op, self._cls.constants.member(c.u2()))
            case _ if Opcode.INVOKEVIRTUAL <= op <= Opcode.INVOKEINTERFACE:
                self._call(op, self._cls.constants.member(c.u2()))
            case Opcode.TABLESWITCH | Opcode.LOOKUPSWITCH:
                return self._switch(pos, op, c)
            case Opcode.INSTANCEOF:
                wanted, value = self._cls.constants.class_name(c.u2()), self._stack.pop()
                if value is not None and not (isinstance(value, Instance) and value.cls == wanted):
                    push(self._decide(f"tests whether {_shown(value)} is a {wanted}", 2, pos))
                else:
                    push(int(value is not None))
            case _:
                self._object_step(op, c)
        return None

    def _number_step(self, op: int, c: Cursor) -> None:
        push = self._stack.append
        match op:
            case _ if Opcode.IADD <= op <= Opcode.LXOR:
                self._calculate(op)
            case Opcode.IINC:
                place, more = c.u1(), c.i1()
                self._locals[place] = _number(self._locals.get(place), lambda v: to_int32(v + more))
            case _ if Opcode.I2L <= op <= Opcode.I2S:
                push(_converted(self._stack.pop(), op))
            case _ if Opcode.LCMP <= op <= Opcode.DCMPG:
                b, a = self._stack.pop(), self._stack.pop()
                of_nan = 1 if op in (Opcode.FCMPG, Opcode.DCMPG) else -1
                push(_known(a, b, lambda x, y: of_nan if x != x or y != y else (x > y) - (x < y)))

    def _object_step(self, op: int, c: Cursor) -> None:
        push = self._stack.append
        match op:
            case Opcode.INVOKEDYNAMIC:
                index = c.u2()
                _, name, descriptor = self._cls.constants.dynamic(index)
                taken = self._take(descriptor)
                if name == "hashCode" and self._cls.is_record and isinstance(taken[0], Instance):
                    push(self._machine.hash_of_record(self._cls, taken[0], self._depth))
                else:
                    push(self._machine.link(self._cls, index, taken))
            case Opcode.NEW:
                name = self._cls.constants.class_name(c.u2())
                if name in self._machine.path:
                    self._machine.initialize(name)
                    push(Instance(name))
                else:
                    push(self._machine.new(name))
            case Opcode.NEWARRAY | Opcode.ANEWARRAY:
                size = self._stack.pop()
                push(
                    [None if op == Opcode.ANEWARRAY else 0] * size
                    if isinstance(size, int) and 0 <= size < 1000
                    else Some("an array")
                )
            case Opcode.ARRAYLENGTH:
                array = self._stack.pop()
                self._machine.check_null(array, "takes the length of an array")
                push(len(array) if isinstance(array, list) else Some("the length of an array"))
            case Opcode.ATHROW:
                error = self._stack.pop()
                raise Thrown(f"throws {error.cls if isinstance(error, Instance) else _shown(error)}")
            case Opcode.CHECKCAST:
                if (value := self._stack[-1]) is not None:
                    self._machine.check_null(value, "casts")
            case _:
                raise Unfollowed(f"has the instruction {op:#x}, which is not followed")

    def _load_element(self, op: int) -> None:
        index, array = self._stack.pop(), self._stack.pop()
        self._machine.check_null(array, "reads an element of an array")
        if not isinstance(array, list) or not isinstance(index, int):
            self._stack.append(self._machine.element_of())
            return
        if not 0 <= index < len(array):
            raise Thrown("throws java.lang.ArrayIndexOutOfBoundsException")
        self._stack.append(array[index])

    def _store_element(self) -> None:
        value, index, array = self._stack.pop(), self._stack.pop(), self._stack.pop()
        self._machine.check_null(array, "writes an element of an array")
        if not isinstance(array, list):
            return  # none of its elements is known
        if not isinstance(index, int):
            raise Unfollowed("writes an element of an array at a place that is not known")
        if not 0 <= index < len(array):
            raise Thrown("throws java.lang.ArrayIndexOutOfBoundsException")
        array[index] = value

    def _calculate(self, op: int) -> None:
        if op in (Opcode.INEG, Opcode.LNEG, Opcode.FNEG, Opcode.DNEG):
            self._stack.append(_number(self._stack.pop(), lambda v: _WRAPS[op % 4](-v)))
            return
        b, a = self._stack.pop(), self._stack.pop()
        kind = op - op % 4  # the instruction for ints
        if op >= Opcode.ISHL:
            self._stack.append(_known(a, b, lambda x, y: _bits(op, x, y)))
            return
        is_whole = op % 4 < 2
        if kind in (Opcode.IDIV, Opcode.IREM) and is_whole:  # ints and longs
            if not isinstance(b, int):
                raise Unfollowed(f"divides by {_shown(b)}")
            if b == 0:
                raise Thrown("throws java.lang.ArithmeticException")
        wrap = _WRAPS[op % 4]
        operations: Mapping[int, Callable[[Any, Any], Any]] = {
            Opcode.IADD: lambda x, y: wrap(x + y), Opcode.ISUB: lambda x, y: wrap(x - y), Opcode.IMUL: lambda x, y: wrap(x * y),
            Opcode.IDIV: lambda x, y: wrap(_quotient(x, y)), Opcode.IREM: lambda x, y: x - y * _quotient(x, y),
        }  # fmt: skip
        operation = operations[kind] if kind < Opcode.IDIV or is_whole else None
        self._stack.append(Some("a number") if operation is None else _known(a, b, operation))

    def _switch(self, pos: int, op: int, c: Cursor) -> int:
        value = self._stack.pop()
        c.skip(-c.pos % 4)
        otherwise = c.i4()
        if op == Opcode.TABLESWITCH:
            low, high = c.i4(), c.i4()
            targets = {key: c.i4() for key in range(low, high + 1)}
        else:
            targets = {c.i4(): c.i4() for _ in range(c.i4())}
        if isinstance(value, int):
            return pos + targets.get(value, otherwise)
        ways = sorted({otherwise, *targets.values()})
        return pos + ways[self._decide(f"depends on {_shown(value)}", len(ways), pos)]

    def _decide(self, reason: str, count: int, pos: int) -> int:
        return self._machine.decide(reason, count, (self._cls.name, self._number, pos))

    def _branch(self, pos: int, op: int, c: Cursor) -> int | None:
        target = pos + c.i2()
        if op == Opcode.GOTO:
            return target
        try:
            holds = self._holds(op)
        except Unfollowed as reason:
            holds = bool(self._decide(str(reason), 2, pos))
        return target if holds else None

    def _holds(self, op: int) -> bool:
        """Return whether the condition of a jump holds."""
        if op in (Opcode.IFNULL, Opcode.IFNONNULL):
            value = self._stack.pop()
            if isinstance(value, Some) and value.may_be_null:
                raise Unfollowed(f"depends on {value.origin}")
            return (value is None) == (op == Opcode.IFNULL)
        if op <= Opcode.IFLE:
            b, a = 0, self._stack.pop()
            compare = _COMPARISONS[op - Opcode.IFEQ]
        else:
            b, a = self._stack.pop(), self._stack.pop()
            compare = _COMPARISONS[(op - Opcode.IF_ICMPEQ) % 6]
        if op in (Opcode.IF_ACMPEQ, Opcode.IF_ACMPNE):
            return self._machine.is_same(a, b) == (op == Opcode.IF_ACMPEQ)
        if not isinstance(a, int) or not isinstance(b, int):
            raise Unfollowed(f"depends on {_shown(a if not isinstance(a, int) else b)}")
        return compare(a, b)

    def _access(self, op: int, member: MemberReference) -> None:
        if op in (Opcode.GETSTATIC, Opcode.PUTSTATIC):
            owner = member.owner
            self._machine.initialize(owner)
            if op == Opcode.PUTSTATIC:
                self._machine.statics[owner, member.name] = self._stack.pop()
                if self._method.name != _INITIALIZER:
                    self._machine.assigned.add((owner, member.name))
            elif owner in self._machine.path:
                self._stack.append(
                    self._machine.statics.get((owner, member.name), Some(f"{owner}.{member.name}", True))
                )
            else:
                self._stack.append(self._machine.constant(member))
            return
        value = self._stack.pop() if op == Opcode.PUTFIELD else None
        target = self._stack.pop()
        self._machine.check_null(target, f"uses the field {member.name} of")
        if op == Opcode.PUTFIELD:
            if isinstance(target, Instance):
                target.fields[member.name] = value
        elif isinstance(target, Instance):
            self._stack.append(target.fields.get(member.name, _default(member.descriptor)))
        else:
            self._stack.append(Some(f"the field {member.name}", may_be_null=True))

    def _take(self, descriptor: str) -> list[Any]:
        count = len(parse_parameters(descriptor)[0])
        taken = self._stack[len(self._stack) - count :]
        del self._stack[len(self._stack) - count :]
        return taken

    def _call(self, op: int, method: MemberReference) -> None:
        arguments = self._take(method.descriptor)
        receiver = None if op == Opcode.INVOKESTATIC else self._stack.pop()
        returns = not method.descriptor.endswith(")V")
        result = self._result_of(op, method, receiver, arguments)
        if returns:
            self._stack.append(result)

    def _result_of(self, op: int, method: MemberReference, receiver: Any, arguments: list[Any]) -> Any:
        machine = self._machine
        if op == Opcode.INVOKESTATIC:
            machine.initialize(method.owner)
            found = machine.find(method.owner, method)
            if found is not None:
                return machine.run(*found, arguments, self._depth + 1)
            return machine.call_outside(op, method, None, arguments, self._depth)
        machine.check_null(receiver, f"calls {method.name}() of")
        if isinstance(receiver, Instance):
            found = machine.find(
                receiver.cls if op in (Opcode.INVOKEVIRTUAL, Opcode.INVOKEINTERFACE) else method.owner, method
            )
            if found is not None:
                return machine.run(*found, [receiver, *arguments], self._depth + 1)
        return machine.call_outside(op, method, receiver, arguments, self._depth)


def _static_result(machine: Machine, method: MemberReference, arguments: list[Any], depth: int) -> Any:
    """Return the result of a static method outside of the jar."""
    first = arguments[0] if arguments else None
    if method.name in _CHECKS and arguments:
        if isinstance(first, Some) and first.may_be_null:
            raise Unfollowed(f"requires {first.origin}")
        if first is not None:
            return first
        if method.name == "requireNonNullElse" and arguments[1] is not None:
            return arguments[1]
        raise Thrown("throws java.lang.NullPointerException")
    if method.owner in BOXES and isinstance(first, int | float):
        if method.name == "valueOf":
            return Boxed(method.owner, first)
        if method.name == "hashCode":
            return _hash_of_number(BOXES[method.owner], first)
    call = (method.owner, method.name)
    if call == ("java.lang.System", "identityHashCode"):
        raise AddressHash("the object")
    if call == ("java.util.Objects", "hashCode"):
        return machine.hash_of(first, depth)
    if call in (("java.util.Objects", "hash"), ("java.util.Arrays", "hashCode")) and isinstance(first, list):
        primitive = _NAMES.get(method.descriptor[2:3]) if method.name == "hashCode" else None
        total = 1
        for part in first:
            total = to_int32(
                31 * total + (machine.hash_of(part, depth) if primitive is None else _hash_of_number(primitive, part))
            )
        return total
    if call == ("java.util.Arrays", "hashCode") and first is None:
        return 0
    if call in (("java.util.Objects", "equals"), ("java.util.Objects", "deepEquals")):
        return _equal(machine, first, arguments[1], depth, deep=method.name == "deepEquals")
    if method.name == "copyOf" and len(arguments) == 1 and first is None:
        raise Thrown("throws java.lang.NullPointerException")
    if (method.owner, method.name) == ("java.util.Objects", "isNull"):
        return int(first is None) if not isinstance(first, Some) else Some(first.origin)
    _check_known(arguments, method)
    return Some(f"the result of {method.owner}.{method.name}()", may_be_null=True)


def _equal(machine: Machine, a: Any, b: Any, depth: int, *, deep: bool) -> Any:
    """Return the result of ``Objects.equals``, or of ``deepEquals``, which compares the elements of arrays."""
    if a is None or b is None:
        return int(a is b)
    if isinstance(a, Instance) and isinstance(b, Instance):
        return machine.call(a, MemberReference(a.cls, "equals", "(Ljava/lang/Object;)Z"), [b], depth)
    if isinstance(a, list) and isinstance(b, list):
        if not deep:
            return int(a is b)
        if any(isinstance(part, Some | Instance | list) for part in (*a, *b)):
            raise Unfollowed("compares arrays of objects")
        return int(a == b)
    if isinstance(a, str | Boxed | Constant | Known) and type(a) is type(b):
        return int(a == b)
    raise Unfollowed(f"compares {_shown(a)}")


def _hash_of_number(primitive: str, value: Any) -> int:
    if not isinstance(value, int | float):
        raise Unfollowed(f"hashes {_shown(value)}")
    hashes: Mapping[str, Callable[[Any], int]] = {
        "long": hash_long, "double": hash_double, "float": hash_float, "boolean": lambda v: hash_bool(bool(v)),
    }  # fmt: skip
    return hashes.get(primitive, int)(value)


def _to_int64(value: int) -> int:
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def _quotient(a: int, b: int) -> int:
    found = abs(a) // abs(b)
    return found if (a < 0) == (b < 0) else -found


def _bits(op: int, a: int, b: int) -> int:
    """Return the result of a shift or of an operation on bits: odd instructions are those of longs."""
    is_long = op % 2 == 1
    wrap, size = (_to_int64, 64) if is_long else (to_int32, 32)
    match op:
        case Opcode.ISHL | Opcode.LSHL:
            return wrap(a << (b % size))
        case Opcode.ISHR | Opcode.LSHR:
            return wrap(a >> (b % size))
        case Opcode.IUSHR | Opcode.LUSHR:
            return wrap((a & ((1 << size) - 1)) >> (b % size))
        case Opcode.IAND | Opcode.LAND:
            return a & b
        case Opcode.IOR | Opcode.LOR:
            return a | b
    return a ^ b


def _to_float32(value: float) -> float:
    """Return a number as a ``float`` of Java."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


_WRAPS: Final[tuple[Callable[[Any], Any], ...]] = (to_int32, _to_int64, _to_float32, float)


def _within(text: str, start: int, end: int) -> str:
    if not 0 <= start <= end <= len(text):
        raise Thrown("throws java.lang.StringIndexOutOfBoundsException")
    return text[start:end]


def _check_known(values: Sequence[Any], method: MemberReference) -> None:
    """Methods outside of the jar are taken to work with constants and with objects that were just created, as in every job."""
    for value in values:
        if value is None or (isinstance(value, Some) and value.may_be_null):
            raise Unfollowed(f"passes {_shown(value)} to {method.owner}.{method.name}()")


def _shown(value: Any) -> str:
    return value.origin if isinstance(value, Some) else "null" if value is None else repr(value)


def _number_of(op: int) -> int | float:
    """Return the number that an instruction from ``iconst_m1`` to ``dconst_1`` names."""
    if op <= Opcode.LCONST_1:
        return op - (Opcode.ICONST_0 if op <= Opcode.ICONST_5 else Opcode.LCONST_0)
    return float(op - (Opcode.FCONST_0 if op <= Opcode.FCONST_2 else Opcode.DCONST_0))


def _number(value: Any, operation: Callable[[Any], Any]) -> Any:
    return operation(value) if isinstance(value, int | float) else Some("a number")


def _known(a: Any, b: Any, operation: Callable[[Any, Any], Any]) -> Any:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return operation(a, b)
    return next((v for v in (a, b) if isinstance(v, Some)), Some("a number"))


def _converted(value: Any, op: int) -> Any:
    """Return the result of a conversion between numbers, from ``i2l`` to ``i2s``."""
    if not isinstance(value, int | float):
        return value
    match op:
        case Opcode.I2F | Opcode.L2F | Opcode.D2F:
            return _to_float32(float(value))
        case Opcode.I2D | Opcode.L2D | Opcode.F2D:
            return float(value)
        case Opcode.F2I | Opcode.F2L | Opcode.D2I | Opcode.D2L:
            size = 31 if op in (Opcode.F2I, Opcode.D2I) else 63
            if value != value:
                return 0
            return int(max(-(1 << size), min((1 << size) - 1, value)))
        case Opcode.I2B:
            return ((int(value) + 0x80) & 0xFF) - 0x80
        case Opcode.I2C:
            return int(value) & 0xFFFF
        case Opcode.I2S:
            return ((int(value) + 0x8000) & 0xFFFF) - 0x8000
    return to_int32(int(value)) if op == Opcode.L2I else int(value)


def components_of(cls: ClassFile) -> Iterator[Member]:
    """Yield the fields of a record, in the order of its components."""
    return (m for m in cls.fields if not m.access & STATIC)
