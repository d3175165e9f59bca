"""Names in a traced function: names of SymPy functions refer to versions for traced values.

A copy of the function with the same code is run. The copy looks names up in the same scopes and at the same
time as the original; if the value is a SymPy function (or SymPy itself, ``float``, or another Python function
that names one), the copy gets a replacement. SymPy, the user's function and its module are not changed, so
other threads are not affected. A SymPy function that is reached in another way, in a method or a list, makes
an expression of traced scalars and refuses traced arrays.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from sympy.core.function import FunctionClass

from symad.core.dims import format_shape
from symad.errors import TraceError
from symad.ops.basic.shaping import reshape
from symad.tracing.elements.filled import holds_traced, unfilled
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import Wrapped, number
from symad.tracing.sympy_heads import stand_in
from symad.tracing.users_line import LIBRARIES

if TYPE_CHECKING:
    from symad.core.arrays import Array


def reading_stand_ins(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that computes the same as ``f``, with stand-ins for the functions of SymPy that it names."""
    if isinstance(f, FunctionClass):
        return _of_head(f)
    if isinstance(f, functools.partial):
        return functools.partial(reading_stand_ins(f.func), *f.args, **f.keywords)
    if isinstance(f, MethodType):
        method = reading_stand_ins(f.__func__)
        return f if method is f.__func__ else MethodType(method, f.__self__)
    if not isinstance(f, FunctionType):
        calls = [vars(c)["__call__"] for c in type(f).__mro__ if "__call__" in vars(c)][:1]
        return reading_stand_ins(MethodType(calls[0], f)) if isinstance(calls[0], FunctionType) else f
    found: Callable[..., Any] = _with_stand_ins(reachable(f)).of(f)
    return found


def _of_head(head: FunctionClass) -> Any:
    """The stand-in of a function of SymPy; symad's own functions accept traced values and need none."""
    return head if str(head.__module__).startswith("symad.") else stand_in(head)


IN_PLACE: dict[tuple[str, str], Callable[..., Any]] = {}
"""The replacement of a library's function in traced functions, by module and name."""

LIBRARIES_READ = ("sympy", "scipy")
"""The libraries whose functions are replaced."""


def in_place_of(module: str, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the replacement of a library's function in traced functions.

    The replacement is called if a traced value is among the arguments, otherwise the original.
    """

    def register(made: Callable[..., Any]) -> Callable[..., Any]:
        IN_PLACE[module, name] = made
        return made

    return register


def _in_place(original: FunctionType) -> Callable[..., Any] | None:
    """The replacement of a library's function, if there is one."""
    module = ".".join(str(original.__module__).split(".")[:2])
    made = IN_PLACE.get((module, original.__name__))
    if made is None:
        return None

    @functools.wraps(original)
    def call(*args: Any, **options: Any) -> Any:
        traced = any(map(holds_traced, (*args, *options.values())))
        return made(*args, **options) if traced else original(*args, **options)

    return call


class NamesOfLibrary(ModuleType):
    """SymPy or SciPy, or a part of it, as a traced function sees it."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        made = _replaced(found)
        return found if made is None else made


def _replaced(value: Any) -> Any:
    """The stand-in of a value of SymPy or SciPy; None if it has none."""
    if value is float:
        return TracedFloat
    if isinstance(value, FunctionClass):
        made = _of_head(value)
        return None if made is value else made
    if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in LIBRARIES_READ:
        return NamesOfLibrary(value)
    return _in_place(value) if isinstance(value, FunctionType) else None


class StandIns:
    """The stand-ins of values; for all other values `of` returns the value itself."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[Any, Any]] = {}

    def add(self, value: Any, made: Any) -> None:
        """Add the stand-in of a value; the value is kept alive, so that no other object gets its identity."""
        self._made[id(value)] = value, made

    def of(self, value: Any) -> Any:
        """The stand-in of a value, or the value."""
        return self._made.get(id(value), (value, value))[1]

    def __contains__(self, value: object) -> bool:
        return id(value) in self._made


class CopiedNames(dict[str, Any]):
    """The names of a module as the copy of one of its functions reads them."""

    def __init__(self, module: dict[str, Any], stand_ins: StandIns) -> None:
        super().__init__({name: module[name] for name in IDENTITY if name in module})
        self._module, self._stand_ins = module, stand_ins

    def __missing__(self, name: str) -> Any:
        """Python calls this when the code reads a name, before it looks in the builtins."""
        if name == "float" and name not in self._module:
            return self._stand_ins.of(float)
        return self._stand_ins.of(self._module[name])


def reachable(f: FunctionType) -> dict[FunctionType, list[Any]]:
    """The function and the user's functions that it reaches by names, each with the values that it names."""
    found: dict[FunctionType, list[Any]] = {}
    open_ = [f]
    while open_:
        function = open_.pop()
        if function not in found and _may_be_copied(function):
            found[function] = _named(function)
            open_.extend(value for value in found[function] if isinstance(value, FunctionType))
    return found


def _may_be_copied(f: FunctionType) -> bool:
    """False for functions of libraries, copies, and functions that set global or enclosing names."""
    module = str(f.__module__)
    if module.partition(".")[0] in LIBRARIES and not module.startswith("symad.models."):
        return False
    return not isinstance(f.__globals__, CopiedNames) and not any(map(_sets_names, _codes(f.__code__)))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those defined in it."""
    open_ = [code]
    while open_:
        code = open_.pop()
        yield code
        open_.extend(c for c in code.co_consts if isinstance(c, CodeType))


@functools.lru_cache(maxsize=4096)
def _sets_names(code: CodeType) -> bool:
    """True if code sets a name of its module, or a variable of the function around it."""
    return any(
        i.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
        or (i.opname in ("STORE_DEREF", "DELETE_DEREF") and i.argval in code.co_freevars)
        for i in dis.get_instructions(code)
    )


def _named(f: FunctionType) -> list[Any]:
    """The values of the global and enclosing names that the code of a function reads."""
    codes = list(_codes(f.__code__))
    names = {name for code in codes for name in code.co_names}
    values = [f.__globals__[name] for name in names if name in f.__globals__]
    if "float" in names and "float" not in f.__globals__ and all(map(compares_no_types, codes)):
        values.append(float)
    return values + [cell.cell_contents for cell in f.__closure__ or () if _is_full(cell)]


def _is_full(cell: CellType) -> bool:
    """True if a variable of an enclosing function already has a value."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _with_stand_ins(functions: dict[FunctionType, list[Any]]) -> StandIns:
    """Stand-ins of SymPy's functions, and copies of the functions that reach one."""
    found = StandIns()
    for value in (v for values in functions.values() for v in values):
        if (made := _replaced(value)) is not None:
            found.add(value, made)
    open_, cells = True, {}
    while open_:
        new = [f for f, named in functions.items() if f not in found and any(v in found for v in named)]
        for f in new:
            copy, cells[f] = _copy(f, found)
            found.add(f, copy)
        open_ = bool(new)
    for f, own in cells.items():
        for cell, original in zip(own, f.__closure__ or (), strict=True):
            if cell is not original and _is_full(original):
                cell.cell_contents = found.of(original.cell_contents)
    return found


def _copy(f: FunctionType, stand_ins: StandIns) -> tuple[FunctionType, tuple[CellType, ...]]:
    """The same code with other names, and the variables of enclosing functions, which are to be filled.

    A variable that contains neither a function nor SymPy is shared with the original.
    """
    kinds = FunctionType, FunctionClass, ModuleType
    cells = tuple(
        CellType() if _is_full(c) and isinstance(c.cell_contents, kinds) else c for c in f.__closure__ or ()
    )
    made = FunctionType(f.__code__, CopiedNames(f.__globals__, stand_ins), f.__name__, f.__defaults__, cells)
    made.__kwdefaults__ = f.__kwdefaults__
    functools.update_wrapper(made, f)
    return made, cells


# ---- float(x) of a traced number in the code of a traced function --------------------------------


class _LikeFloat(type):
    """The class of the stand-in."""

    def __call__(cls, *args: Any, **options: Any) -> Array | float:
        """The number itself if it is traced, otherwise ``float`` of the arguments."""
        if len(args) == 1 and not options and holds_traced(args[0]):
            return _one_number(unfilled(args[0]))
        return float(*args, **options)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, float)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, float)

    def __eq__(cls, other: object) -> bool:
        return other is float or other is cls

    def __hash__(cls) -> int:
        return hash(float)


class TracedFloat(float, metaclass=_LikeFloat):
    """The replacement of ``float`` in traced functions: of a traced number it is the number itself.

    Python requires that ``float`` returns a float, so no method of a traced value can implement it. For all
    but traced values, and as a type, a dtype or a key, this class behaves like ``float``. Only ``is``
    distinguishes the two, so code that tests ``type(x) is float`` keeps the original.
    """

    dtype = np.dtype(float)
    """The dtype that NumPy reads if the class is used as a dtype."""


def _one_number(value: Array) -> Array | float:
    """A traced value of one element as a number, as NumPy converts arrays of one element.

    Raises:
        TraceError: it has several elements.
        TypeError: it is a list.
    """
    if not isinstance(value, Wrapped):
        return float(value)
    node = number(value)
    if any(length != 1 for length in node.shape):
        raise TraceError(
            f"float() of a traced array of shape {format_shape(node.shape)}: it takes a number, or an array "
            "of one element; index it first"
        )
    return Proxy(reshape(node, ()))


@lru_cache(maxsize=4096)
def compares_no_types(code: CodeType) -> bool:
    """True if code uses ``is`` for comparisons with None only."""
    after_none = False
    for step in dis.get_instructions(code):
        if step.opname == "IS_OP" and not after_none:
            return False
        after_none = step.opname == "LOAD_CONST" and step.argval is None
    return True


IDENTITY = ("__builtins__", "__name__", "__package__", "__spec__", "__loader__", "__file__")
"""The names of a module that Python reads itself, not by running code."""
