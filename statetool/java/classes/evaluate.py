"""Results of methods as expressions over the fields of their object, found without running anything.

Instructions are followed in their order with symbolic values. Where branches meet, values that differ become a choice. Methods of the same
object, and static ones in the jar, are followed too. A method with a loop, or with a call whose result is not known, has no expression.
Follows chapter 6 of the Java Virtual Machine Specification.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from statetool.io.cursor import Cursor
from statetool.java.classes.bytecode import Opcode, instructions
from statetool.java.classes.class_file import STATIC, ClassFile, Member, MemberReference
from statetool.java.classes.class_path import ClassPath
from statetool.java.classes.expressions import (
    NULL,
    THIS,
    Expression,
    Linear,
    NotEvaluatedError,
    Value,
    choice,
    decide,
    fold,
    int_choice,
    is_null,
    is_zero,
    of_nullable,
    of_object,
    of_primitive,
    polynomial,
    term,
)
from statetool.java.classes.signatures import GenericType, parse_parameters
from statetool.types.java import BOXES

_INTS: Final = "ZBCSI"
_INT_NAMES: Final = ("boolean", "byte", "char", "short", "int")
_CODES: Final = dict(zip(BOXES, "ZBSCIJFD", strict=True))
_MAX_DEPTH: Final = 16
#: Maximum number of instructions that are followed for one result.
_MAX_STEPS: Final = 10_000
_MAX_ELEMENTS: Final = 1000
#: Maximum number of branches that are open at a time.
_MAX_BRANCHES: Final = 64
_BUILDERS: Final = (
    "org.apache.commons.lang3.builder.HashCodeBuilder",
    "org.apache.commons.lang.builder.HashCodeBuilder",
)
_VARARGS_HASHES: Final = (
    ("java.util.Objects", "hash"),
    ("java.util.Arrays", "hashCode"),
    ("com.google.common.base.Objects", "hashCode"),
)
_RECORD_METHODS: Final = "java.lang.runtime.ObjectMethods"
#: Conversions to int (from double, float, and to its smaller types), and to long and double.
_TO_INT: Final = (Opcode.F2I, Opcode.D2I, Opcode.I2B, Opcode.I2C, Opcode.I2S)
_TO_WIDE: Final = (Opcode.I2L, Opcode.I2D, Opcode.L2D, Opcode.F2L, Opcode.F2D, Opcode.D2L)
HASH_CODE: Final = MemberReference("", "hashCode", "()I")


@dataclass(frozen=True, slots=True)
class _Builder:
    """A ``HashCodeBuilder`` with its hash code so far."""

    total: Linear
    multiplier: int


@dataclass(slots=True)
class _State:
    """Values of the stack and of local variables, arrays and builders, and the conditions of the branches that led here."""

    stack: list[Value] = field(default_factory=list)
    variables: dict[int, Value] = field(default_factory=dict)
    objects: dict[int, tuple[Expression, ...] | _Builder | None] = field(default_factory=dict)
    conditions: tuple[tuple[Expression, bool], ...] = ()

    def copy(self) -> _State:
        return replace(self, stack=[*self.stack], variables={**self.variables}, objects={**self.objects})

    def pop(self) -> Value:
        if not self.stack:
            raise NotEvaluatedError("takes values from an empty stack")
        return self.stack.pop()

    def pop_int(self) -> Linear:
        value = self.pop()
        if not isinstance(value, Linear):
            raise NotEvaluatedError("calculates with other types than its instructions")
        return value

    def pop_other(self) -> Expression:
        value = self.pop()
        if not isinstance(value, Expression):
            raise NotEvaluatedError("calculates with other types than its instructions")
        return value


class Evaluator:
    """Evaluates methods of one object.

    Parameters
    ----------
    cls
        Class of the object.
    """

    def __init__(self, class_path: ClassPath, cls: ClassFile) -> None:
        self._path = class_path
        self.cls = cls
        self._steps = 0
        self._created = 0

    def call(self, method: MemberReference) -> Value:
        """Return the result of a method of the object without arguments.

        Raises
        ------
        NotEvaluatedError
            It is not an expression over the fields.
        FormatError
            A class file is damaged.
        """
        return self.call_on_this(self.cls, method, [], 0)

    def call_on_this(
        self, start: ClassFile | None, method: MemberReference, arguments: Sequence[Value], depth: int
    ) -> Value:
        """Return the result of the method that a class has or inherits."""
        cls, name = start, ""
        seen = set()
        while cls is not None and cls.name not in seen:
            seen.add(cls.name)
            found = next((m for m in cls.methods if (m.name, m.descriptor) == (method.name, method.descriptor)), None)
            if found is not None:
                return self.run(cls, found, [THIS, *arguments], depth)
            name = cls.superclass
            cls = self._path.read(name)
        if name in ("java.lang.Object", "java.lang.Record") and method.name == "hashCode":
            raise NotEvaluatedError("is inherited from Object, which hashes by address")
        raise NotEvaluatedError(f"calls {method.name}() of {name or method.owner}, which is not in the jar")

    def call_static(self, method: MemberReference, arguments: Sequence[Value], depth: int) -> Value:
        """Return the result of a static method in the jar."""
        cls = self._path.read(method.owner)
        found = (
            None
            if cls is None
            else next((m for m in cls.methods if (m.name, m.descriptor) == (method.name, method.descriptor)), None)
        )
        if cls is None or found is None or not found.access & STATIC:
            raise _unknown_call(method)
        return self.run(cls, found, arguments, depth)

    def run(self, cls: ClassFile, method: Member, arguments: Sequence[Value], depth: int) -> Value:
        """Return the result of a method."""
        if not method.code:
            raise NotEvaluatedError(f"calls {method.name}() of {cls.name}, which has no code")
        if depth > _MAX_DEPTH:
            raise NotEvaluatedError(f"calls methods more than {_MAX_DEPTH} deep")
        return _Run(self, cls, method, arguments, depth).result()

    def new_object(self) -> Expression:
        """Return a new array or builder."""
        self._created += 1
        return Expression("new", (self._created,))

    def count_step(self) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise NotEvaluatedError(f"has more than {_MAX_STEPS} instructions")

    def superclass_of(self, cls: ClassFile, name: str) -> ClassFile | None:
        """Return the class whose method ``invokespecial`` calls."""
        if name in ("java.lang.Object", "java.lang.Record"):
            raise NotEvaluatedError("is that of Object, which hashes by address")
        return cls if name == cls.name else self._path.read(name)


def _unknown_call(method: MemberReference) -> NotEvaluatedError:
    return NotEvaluatedError(f"calls {method.owner}.{method.name}(), whose result is not known")


class _Run:
    """One run of one method."""

    def __init__(
        self, evaluator: Evaluator, cls: ClassFile, method: Member, arguments: Sequence[Value], depth: int
    ) -> None:
        self._evaluator = evaluator
        self._cls = cls
        self._code = method.code
        self._depth = depth
        self._arrived: dict[int, list[_State]] = {}
        self._returned: list[_State] = []
        self._state: _State | None = _State(variables=_variables_of(arguments))

    def result(self) -> Value:
        for operation, operands in instructions(self._code):
            self._evaluator.count_step()
            pc = operands.pos - 1
            here = self._arrived.pop(pc, [])
            if self._state is not None:
                here.append(self._state)
            if not here:
                continue  # only exceptions lead here
            self._state = _merge(here)
            step = _STEPS.get(operation)
            if step is None:
                raise NotEvaluatedError(f"has the instruction {operation:#x}, which is not followed")
            step(self, self._state, operation, operands)
        if not self._returned:
            raise NotEvaluatedError("does not return")
        return _merge(self._returned).pop()

    def _branch(self, state: _State, operands: Cursor, condition: Expression, expected: bool) -> None:
        """Follow a branch that is taken if the condition is as expected."""
        target = operands.pos - 1 + operands.i2()
        if target < operands.pos:
            raise NotEvaluatedError("has a loop")
        decided = decide(condition)
        if len(state.conditions) >= _MAX_BRANCHES or len(self._arrived.get(target, ())) >= _MAX_BRANCHES:
            raise NotEvaluatedError(f"has more than {_MAX_BRANCHES} open branches")
        if decided is None:
            taken = state.copy()
            taken.conditions = (*state.conditions, (condition, expected))
            state.conditions = (*state.conditions, (condition, not expected))
            self._arrived.setdefault(target, []).append(taken)
        elif decided == expected:
            self._arrived.setdefault(target, []).append(state)
            self._state = None

    # Each step has the state before the instruction, the operation and a cursor at its operands.

    def constant(self, state: _State, operation: int, operands: Cursor) -> None:
        if operation == Opcode.ACONST_NULL:
            state.stack.append(NULL)
        elif operation <= Opcode.ICONST_5:
            state.stack.append(Linear(operation - Opcode.ICONST_0))
        elif operation <= Opcode.DCONST_1:
            base, wide = ((Opcode.LCONST_0, True), (Opcode.FCONST_0, False), (Opcode.DCONST_0, True))[
                (operation >= Opcode.FCONST_0) + (operation >= Opcode.DCONST_0)
            ]
            state.stack.append(Expression("number", (operation - base,), wide))
        elif operation in (Opcode.BIPUSH, Opcode.SIPUSH):
            state.stack.append(Linear(operands.i1() if operation == Opcode.BIPUSH else operands.i2()))
        else:
            self._load_constant(state, operation, operands)

    def _load_constant(self, state: _State, operation: int, operands: Cursor) -> None:
        loaded = self._cls.constants.loaded(operands.u1() if operation == Opcode.LDC else operands.u2())
        if operation == Opcode.LDC2_W:
            state.stack.append(Expression("number", (loaded,), is_wide=True))
        elif isinstance(loaded, str):
            state.stack.append(Expression("text", (loaded,)))
        elif isinstance(loaded, int):
            state.stack.append(Linear(loaded))
        else:
            state.stack.append(Expression("number", (loaded,)))

    def load(self, state: _State, operation: int, operands: Cursor) -> None:
        index = operands.u1() if operation < Opcode.ILOAD_0 else (operation - Opcode.ILOAD_0) % 4
        if index not in state.variables:
            raise NotEvaluatedError("has a variable with different values")
        state.stack.append(state.variables[index])

    def store(self, state: _State, operation: int, operands: Cursor) -> None:
        state.variables[operands.u1() if operation < Opcode.ISTORE_0 else (operation - Opcode.ISTORE_0) % 4] = (
            state.pop()
        )

    def increment(self, state: _State, operation: int, operands: Cursor) -> None:
        index, by = operands.u1(), operands.i1()
        value = state.variables.get(index)
        if not isinstance(value, Linear):
            raise NotEvaluatedError("has a variable with different values")
        state.variables[index] = value + Linear(by)

    def arrange(self, state: _State, operation: int, operands: Cursor) -> None:
        """``pop``, ``pop2``, ``dup``, ``dup2`` and ``swap``."""
        top = state.pop()
        is_wide = isinstance(top, Expression) and top.is_wide
        match operation:
            case Opcode.POP:
                pass
            case Opcode.POP2:
                if not is_wide:
                    state.pop()
            case Opcode.DUP:
                state.stack += [top, top]
            case Opcode.DUP2 if is_wide:
                state.stack += [top, top]
            case Opcode.SWAP:
                state.stack += [top, state.pop()]
            case _:
                below = state.pop()
                state.stack += [below, top, below, top]

    def calculate(self, state: _State, operation: int, operands: Cursor) -> None:
        """Arithmetic of ints."""
        if operation == Opcode.INEG:
            state.stack.append(state.pop_int() * -1)
            return
        right, left = state.pop_int(), state.pop_int()
        match operation:
            case Opcode.IADD:
                result = left + right
            case Opcode.ISUB:
                result = left + right * -1
            case Opcode.IMUL if not right.terms or not left.terms:
                result = left * right.constant if not right.terms else right * left.constant
            case Opcode.ISHL if not right.terms:
                result = left * (1 << (right.constant & 31))
            case Opcode.IXOR:
                result = _exclusive_or(left, right)
            case _:
                result = term("operation", operation, left, right)
        state.stack.append(result)

    def calculate_wide(self, state: _State, operation: int, operands: Cursor) -> None:
        """Shifts of longs by 32, and exclusive or of longs."""
        if operation == Opcode.LXOR:
            right, left = state.pop_other(), state.pop_other()
            for whole, half in ((left, right), (right, left)):
                if half == Expression("high", (whole,), is_wide=True):
                    state.stack.append(Expression("folded", (whole,), is_wide=True))
                    return
            state.stack.append(Expression("operation", (operation, left, right), is_wide=True))
            return
        by, value = state.pop_int(), state.pop_other()
        is_half = not by.terms and by.constant == 32
        state.stack.append(
            Expression("high", (value,), is_wide=True)
            if is_half
            else Expression("operation", (operation, value, by), is_wide=True)
        )

    def convert(self, state: _State, operation: int, operands: Cursor) -> None:
        if operation == Opcode.L2I:
            value = state.pop_other()
            state.stack.append(fold(*value.args) if value.name == "folded" else term("low", value))
        elif operation in _TO_INT:
            state.stack.append(term("operation", operation, state.pop()))
        else:
            state.stack.append(Expression("operation", (operation, state.pop()), operation in _TO_WIDE))

    def compare(self, state: _State, operation: int, operands: Cursor) -> None:
        right, left = state.pop_other(), state.pop_other()
        state.stack.append(term("compare", left, right))

    def if_int(self, state: _State, operation: int, operands: Cursor) -> None:
        if operation >= Opcode.IF_ICMPEQ:
            right = state.pop_int()
            value, operation = state.pop_int() + right * -1, operation - (Opcode.IF_ICMPEQ - Opcode.IFEQ)
        else:
            value = state.pop_int()
        condition, expected = {
            Opcode.IFEQ: ("is_zero", True), Opcode.IFNE: ("is_zero", False), Opcode.IFLT: ("is_negative", True),
            Opcode.IFGE: ("is_negative", False), Opcode.IFGT: ("is_positive", True), Opcode.IFLE: ("is_positive", False),
        }[operation]  # fmt: skip
        self._branch(state, operands, Expression(condition, (value,)), expected)

    def if_null(self, state: _State, operation: int, operands: Cursor) -> None:
        self._branch(state, operands, is_null(state.pop()), operation == Opcode.IFNULL)

    def go_to(self, state: _State, operation: int, operands: Cursor) -> None:
        target = operands.pos - 1 + operands.i2()
        if target < operands.pos:
            raise NotEvaluatedError("has a loop")
        self._arrived.setdefault(target, []).append(state)
        self._state = None

    def leave(self, state: _State, operation: int, operands: Cursor) -> None:
        """``return`` and ``athrow``: what throws has no result."""
        if operation != Opcode.ATHROW:
            state.stack = [state.pop()]
            state.variables = {}
            self._returned.append(state)
        self._state = None

    def get_field(self, state: _State, operation: int, operands: Cursor) -> None:
        member = self._cls.constants.member(operands.u2())
        if operation == Opcode.GETSTATIC:
            name, args = "static", (member.owner, member.name)
        elif state.pop() == THIS:
            name, args = "field", (member.name, member.descriptor)
        else:
            raise NotEvaluatedError(f"reads field {member.name!r} of another object")
        if member.descriptor in _INTS:
            state.stack.append(term(name, *args))
        else:
            state.stack.append(Expression(name, args, member.descriptor in "JD"))

    def new(self, state: _State, operation: int, operands: Cursor) -> None:
        created = self._evaluator.new_object()
        if operation == Opcode.ANEWARRAY:
            size = state.pop_int()
            if size.terms or not 0 <= size.constant <= _MAX_ELEMENTS:
                raise NotEvaluatedError("has an array of variable or large size")
            state.objects[created.args[0]] = (NULL,) * size.constant
        elif (name := self._cls.constants.class_name(operands.u2())) in _BUILDERS:
            state.objects[created.args[0]] = None
        else:
            raise NotEvaluatedError(f"creates a {name}")
        state.stack.append(created)

    def store_element(self, state: _State, operation: int, operands: Cursor) -> None:
        value, index, array = state.pop_other(), state.pop_int(), state.pop_other()
        elements = state.objects.get(array.args[0]) if array.name == "new" else None
        if not isinstance(elements, tuple) or index.terms or not 0 <= index.constant < len(elements):
            raise NotEvaluatedError("stores a value in an array that it did not create")
        state.objects[array.args[0]] = (*elements[: index.constant], value, *elements[index.constant + 1 :])

    def cast(self, state: _State, operation: int, operands: Cursor) -> None:
        pass

    def invoke(self, state: _State, operation: int, operands: Cursor) -> None:
        method = self._cls.constants.member(operands.u2())
        parameters, result = parse_parameters(method.descriptor)
        arguments = [_checked(state.pop(), kind) for kind in reversed(parameters)][::-1]
        value: Value | None
        if operation == Opcode.INVOKESTATIC:
            value = self._static(state, method, arguments)
        else:
            receiver = state.pop_other()
            if receiver.name == "new":
                value = _build(state, receiver, method, arguments)
            elif receiver == THIS:
                special = (
                    self._evaluator.superclass_of(self._cls, method.owner)
                    if operation == Opcode.INVOKESPECIAL
                    else None
                )
                start = special if operation == Opcode.INVOKESPECIAL else self._evaluator.cls
                value = self._evaluator.call_on_this(start, method, arguments, self._depth + 1)
            else:
                value = _of_other_object(receiver, method)
        if result is not None and value is not None:
            state.stack.append(_checked(value, result))

    def _static(self, state: _State, method: MemberReference, arguments: list[Value]) -> Value:
        known = _STATIC.get((method.owner, method.name, method.descriptor))
        if known is not None:
            return known(*arguments)
        if method.name == "hashCode" and method.owner in BOXES and len(arguments) == 1:
            return of_primitive(_CODES[method.owner], arguments[0])
        if method.name == "valueOf" and method.owner in BOXES and len(arguments) == 1 and method.descriptor[1] != "L":
            return Expression("box", (_CODES[method.owner], arguments[0]))
        if (method.owner, method.name) in _VARARGS_HASHES and method.descriptor == "([Ljava/lang/Object;)I":
            (array,) = arguments
            assert isinstance(array, Expression)
            elements = state.objects.get(array.args[0]) if array.name == "new" else None
            if isinstance(elements, tuple):
                return polynomial(1, 31, [of_nullable(element) for element in elements])
        if method.owner == "java.util.Arrays" and method.name in ("hashCode", "deepHashCode") and len(arguments) == 1:
            return term("elements", *arguments, method.name == "deepHashCode")
        return self._evaluator.call_static(method, arguments, self._depth + 1)

    def invoke_dynamic(self, state: _State, operation: int, operands: Cursor) -> None:
        """``hashCode`` of records, which ``ObjectMethods`` links."""
        index, name, _ = self._cls.constants.dynamic(operands.u2())
        bootstrap = self._cls.bootstraps[index] if index < len(self._cls.bootstraps) else None
        if bootstrap is None or bootstrap.method.owner != _RECORD_METHODS or name != "hashCode" or state.pop() != THIS:
            raise NotEvaluatedError(f"has a dynamic call of {name}()")
        names = self._cls.constants.loaded(bootstrap.arguments[1]) if len(bootstrap.arguments) > 1 else None
        if not isinstance(names, str):
            raise NotEvaluatedError("has record components that are not known")
        descriptors = {f.name: f.descriptor for f in self._cls.fields if not f.access & STATIC}
        hashes = []
        for component in filter(None, names.split(";")):
            code = descriptors.get(component)
            if code is None:
                raise NotEvaluatedError(f"hashes component {component!r}, which is not a field")
            if code in _INTS:
                hashes.append(of_primitive(code, term("field", component, code)))
            elif code in "JFD":
                hashes.append(of_primitive(code, Expression("field", (component, code), code in "JD")))
            else:
                hashes.append(of_nullable(Expression("field", (component, code))))
        state.stack.append(polynomial(0, 31, hashes))


def _variables_of(arguments: Sequence[Value]) -> dict[int, Value]:
    variables, index = {}, 0
    for value in arguments:
        variables[index] = value
        index += 2 if isinstance(value, Expression) and value.is_wide else 1
    return variables


def _merge(states: list[_State]) -> _State:
    """Return the state after branches meet."""
    while len(states) > 1:
        pair = next(
            (
                (a, b)
                for i, a in enumerate(states)
                for b in states[i + 1 :]
                if _are_alternatives(a.conditions, b.conditions)
            ),
            None,
        )
        if pair is None:
            raise NotEvaluatedError("has branches that do not meet pairwise")
        states = [s for s in states if s is not pair[0] and s is not pair[1]]
        states.append(_merge_two(*pair))
    return states[0]


def _are_alternatives(a: tuple[tuple[Expression, bool], ...], b: tuple[tuple[Expression, bool], ...]) -> bool:
    return bool(a) and len(a) == len(b) and a[:-1] == b[:-1] and a[-1][0] == b[-1][0] and a[-1][1] != b[-1][1]


def _merge_two(a: _State, b: _State) -> _State:
    condition, is_true = a.conditions[-1]
    yes, no = (a, b) if is_true else (b, a)
    if len(a.stack) != len(b.stack) or a.objects != b.objects:
        raise NotEvaluatedError("creates other objects in one branch than in the other")
    stack = [choice(condition, left, right) for left, right in zip(yes.stack, no.stack, strict=True)]
    if None in stack:
        raise NotEvaluatedError("has branches with values of different types")
    variables = {
        index: merged
        for index in yes.variables.keys() & no.variables.keys()
        if (merged := choice(condition, yes.variables[index], no.variables[index])) is not None
    }
    return _State([v for v in stack if v is not None], variables, a.objects, a.conditions[:-1])


def _exclusive_or(left: Linear, right: Linear) -> Linear:
    """Return ``left ^ right``; the two halves of a long are its hash code."""
    for low, high in ((left.term, right.term), (right.term, left.term)):
        if low is not None and high is not None and (low.name, high.name) == ("low", "low"):
            (whole,) = low.args
            if high.args == (Expression("high", (whole,), is_wide=True),):
                return fold(whole)
    return term("xor", left, right)


def _of_other_object(receiver: Expression, method: MemberReference) -> Value:
    """Return the result of a method of a field's value."""
    if (method.name, method.descriptor) == ("hashCode", "()I"):
        return of_object(receiver)
    if method.owner in BOXES and method.name == f"{BOXES[method.owner]}Value":
        code = _CODES[method.owner]
        if receiver.name == "box":
            value: Value = receiver.args[1]
            return value
        if code in _INTS:
            return term("unboxed", receiver)
        return Expression("unboxed", (receiver,), code in "JD")
    if (method.name, method.descriptor) == ("ordinal", "()I"):
        return term("ordinal", receiver)
    if (method.name, method.descriptor) == ("name", "()Ljava/lang/String;"):
        return Expression("name", (receiver,))
    raise _unknown_call(method)


def _build(state: _State, builder: Expression, method: MemberReference, arguments: list[Value]) -> Value | None:
    """Return the result of a method of a ``HashCodeBuilder``."""
    number = builder.args[0]
    built = state.objects.get(number)
    if method.owner not in _BUILDERS or isinstance(built, tuple):
        raise _unknown_call(method)
    numbers = [a.constant for a in arguments if isinstance(a, Linear) and not a.terms]
    if built is None and method.name == "<init>" and len(numbers) == len(arguments) in (0, 2):
        start, multiplier = numbers or (17, 37)
        state.objects[number] = _Builder(Linear(start), multiplier)
        return None
    code = method.descriptor[1:].partition(")")[0]
    if built is None:
        raise _unknown_call(method)
    if method.name in ("toHashCode", "hashCode") and not arguments:
        return built.total
    if method.name not in ("append", "appendSuper") or len(arguments) != 1 or code.startswith("["):
        raise _unknown_call(method)
    total = built.total * built.multiplier + _appended(code, arguments[0])
    state.objects[number] = _Builder(total, built.multiplier)
    return builder


def _appended(code: str, value: Value) -> Linear:
    """Return the hash code that ``HashCodeBuilder.append`` adds. It appends the elements of arrays one by one."""
    if code == "Z" and isinstance(value, Linear):
        return int_choice(is_zero(value), 1, 0)
    if len(code) == 1:
        return of_primitive(code, value)
    assert isinstance(value, Expression)
    if value.name == "field" and value.args[1].startswith("["):
        raise NotEvaluatedError("appends an array to a HashCodeBuilder")
    return of_nullable(value)


def _checked(value: Value, kind: GenericType) -> Value:
    """Return a value after a check that it has the type of its place."""
    is_int = kind.kind == "class" and kind.name in _INT_NAMES
    is_wide = kind.kind == "class" and kind.name in ("long", "double")
    if isinstance(value, Linear) != is_int or (isinstance(value, Expression) and value.is_wide != is_wide):
        raise NotEvaluatedError("calculates with other types than its instructions")
    return value


def _float_bits(value: Expression) -> Value:
    return term("float_bits", value)


def _double_bits(value: Expression) -> Value:
    return Expression("double_bits", (value,), is_wide=True)


def _itself(value: Expression) -> Value:
    return value


_STATIC: Final[dict[tuple[str, str, str], Callable[..., Value]]] = {
    ("java.util.Objects", "hashCode", "(Ljava/lang/Object;)I"): of_nullable,
    ("java.lang.Float", "floatToIntBits", "(F)I"): _float_bits,
    ("java.lang.Double", "doubleToLongBits", "(D)J"): _double_bits,
    ("java.util.Objects", "requireNonNull", "(Ljava/lang/Object;)Ljava/lang/Object;"): _itself,
}
_Step = Callable[[_Run, _State, int, Cursor], None]
_STEPS: Final[dict[int, _Step]] = {
    Opcode.NOP: _Run.cast,
    **dict.fromkeys(range(Opcode.ACONST_NULL, Opcode.ILOAD), _Run.constant),
    **dict.fromkeys(range(Opcode.ILOAD, Opcode.IALOAD), _Run.load),
    **dict.fromkeys(range(Opcode.ISTORE, Opcode.IASTORE), _Run.store),
    Opcode.AASTORE: _Run.store_element,
    **dict.fromkeys((Opcode.POP, Opcode.POP2, Opcode.DUP, Opcode.DUP2, Opcode.SWAP), _Run.arrange),
    **dict.fromkeys(
        (
            Opcode.IADD,
            Opcode.ISUB,
            Opcode.IMUL,
            Opcode.IDIV,
            Opcode.IREM,
            Opcode.INEG,
            Opcode.ISHL,
            Opcode.ISHR,
            Opcode.IUSHR,
            Opcode.IAND,
            Opcode.IOR,
            Opcode.IXOR,
        ),
        _Run.calculate,
    ),
    **dict.fromkeys((Opcode.LSHR, Opcode.LUSHR, Opcode.LXOR), _Run.calculate_wide),
    Opcode.IINC: _Run.increment,
    **dict.fromkeys(range(Opcode.I2L, Opcode.LCMP), _Run.convert),
    **dict.fromkeys(range(Opcode.LCMP, Opcode.IFEQ), _Run.compare),
    **dict.fromkeys(range(Opcode.IFEQ, Opcode.IF_ACMPEQ), _Run.if_int),
    Opcode.GOTO: _Run.go_to,
    **dict.fromkeys(
        (Opcode.IRETURN, Opcode.LRETURN, Opcode.FRETURN, Opcode.DRETURN, Opcode.ARETURN, Opcode.ATHROW), _Run.leave
    ),
    **dict.fromkeys((Opcode.GETSTATIC, Opcode.GETFIELD), _Run.get_field),
    **dict.fromkeys(
        (Opcode.INVOKEVIRTUAL, Opcode.INVOKESPECIAL, Opcode.INVOKESTATIC, Opcode.INVOKEINTERFACE), _Run.invoke
    ),
    Opcode.INVOKEDYNAMIC: _Run.invoke_dynamic,
    **dict.fromkeys((Opcode.NEW, Opcode.ANEWARRAY), _Run.new),
    Opcode.CHECKCAST: _Run.cast,
    **dict.fromkeys((Opcode.IFNULL, Opcode.IFNONNULL), _Run.if_null),
}
