"""A lowered function: its source text, compiled and ready to call."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.ma import MaskedArray

from symad.core.arguments import Argument, SignatureOf, as_columns
from symad.core.arguments import bind as bind_arguments
from symad.core.dims import Shape
from symad.core.graph import Graph
from symad.core.identifiers import listed
from symad.core.signatures import Tree
from symad.errors import EvaluationError, LoweringError, ShapeError, SymadError
from symad.evaluation.evaluate import read_array, refuse_fractions, refuse_masked
from symad.numeric.modules.bad_arguments import as_floats, reason
from symad.numeric.modules.module_text import one_line
from symad.numeric.modules.users_functions import check_importable
from symad.saving.atomic_files import write_text
from symad.saving.save_load import dumps

if TYPE_CHECKING:
    from symad.core.arrays import Array

_numbers = count(1)

MAX_LISTED_NODES = 200
"""A notebook shows the listing of kernels with at most this many nodes, and one line for larger ones.

Origin: it bounds the length of a listing.
"""


@dataclass(frozen=True)
class LoweredFrom:
    """The graph and options from which a kernel was lowered; another process can lower it again from them."""

    graph: Graph
    backend: str
    dtype: str
    options: tuple[tuple[str, Hashable], ...] = ()
    """Further options of `symad.numeric.lower`, by name."""
    lower_again: Callable[..., Kernel] | None = field(default=None, repr=False, compare=False)
    """Makes the kernel again from its saved parts, in another process."""
    listing: Callable[[Graph, str], str] | None = field(default=None, repr=False, compare=False)
    """Writes the plain listing of a graph, "markdown" or "latex"."""
    standalone: Callable[[Kernel], tuple[str, str]] | None = field(default=None, repr=False, compare=False)
    """Writes an array graph of backend "c" as standalone C, one of "cupy" as CUDA: source and header."""


REFUSALS: dict[type[Exception], type[SymadError]] = {TypeError: EvaluationError, ValueError: ShapeError}
"""What code raises about its arguments, and the errors that stand for it; a saved file raises the first."""


@dataclass(frozen=True)
class CheckedCall:
    """The function of a kernel, called by position or by name; errors name the user's arguments."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[Argument, ...]
    whole: tuple[int, ...]
    shapes: tuple[Shape, ...] | None
    """The shapes of all inputs, where they are known."""
    on_host: bool = True
    """Whether NumPy reads the arguments; a function on a device reports those that it cannot read itself."""

    def __call__(self, *values: Any, **named: Tree) -> Any:
        """Evaluates the function."""
        if named:
            values = tuple(bind_arguments(self.name, self.arguments, values, named))
        for k, value in enumerate(values):
            if isinstance(value, MaskedArray):
                refuse_masked(self._name_of(k), value)
        for k in self.whole:
            if k < len(values):
                refuse_fractions(self._name_of(k), values[k])
        try:
            return self.function(*values)
        except (ValueError, TypeError, RuntimeError) as error:
            for k, value in enumerate(values):
                if self.on_host and hasattr(type(value), "__array__"):
                    read_array(self._name_of(k), value)
            columns = None if isinstance(error, RuntimeError) else self._as_columns(values)
            for converted in (columns, as_floats(values)):
                if converted is not None:
                    return self(*converted)
            if isinstance(error, RuntimeError):
                raise
            scalar = self.shapes is not None and not any(self.shapes)
            told = reason(self.name, self.arguments, values, scalar, self.on_host)
            if told is None and type(error) not in REFUSALS:
                raise
            raise REFUSALS[TypeError if isinstance(error, TypeError) else ValueError](
                told or str(error)
            ) from (None if told else error)

    def _as_columns(self, values: tuple[Array, ...]) -> list[Any] | None:
        """The values, with vectors reshaped where the input is a column (n, 1); None if that changes none."""
        shapes = self.shapes or ()
        if len(shapes) != len(values) or any(a.structure is not None for a in self.arguments):
            return None
        columns = as_columns(shapes, values)
        return columns if any(a is not b for a, b in zip(columns, values, strict=True)) else None

    def _name_of(self, k: int) -> str:
        """The name of an argument."""
        return one_line(self.arguments[k].name) if k < len(self.arguments) else f"argument {k + 1}"


@dataclass(frozen=True, repr=False)
class Kernel:
    """A generated function: ``text`` is a standalone module, whose last function is the entry.

    Kernels never change, so that threads share them. They are pickled as the saved form of their graph
    with backend, dtype and options, and lowered again where they arrive.
    """

    name: str
    text: str
    function: Callable[..., Any] = field(repr=False)
    namespace: dict[str, Any] = field(repr=False, default_factory=dict)
    c_source: str = field(repr=False, default="")
    """The standalone C99 file of backend "c"; empty for others."""
    c_header: str = field(repr=False, default="")
    """Its header."""
    packed: bool = field(repr=False, default=False)
    """Whether the function of all inputs takes them in one vector."""
    native: Callable[[np.ndarray, np.ndarray], Callable[[], None]] | None = field(repr=False, default=None)
    """How `bind` makes its function for compiled code."""
    plain: Callable[[], Kernel] | None = field(repr=False, default=None)
    """The NumPy form of compiled code, printed when it is first asked for."""
    origin: LoweredFrom | None = field(repr=False, default=None)
    """The graph and the options that it was lowered from."""
    inner: Callable[..., Any] | None = field(repr=False, default=None)
    """The function of all inputs, where arguments group several; None where it is ``function``."""
    arguments: tuple[Argument, ...] = field(repr=False, default=())
    """The arguments of a call, in order."""
    whole: tuple[int, ...] = field(repr=False, default=())
    """Positions of the arguments that take integers only."""
    quick: Callable[[Callable[..., Any]], Callable[..., Any]] | None = field(repr=False, default=None)
    """Wraps the function of all arguments so that C code reads floats and vectors."""
    one_vector: Callable[[Callable[..., Any]], Callable[..., Any]] | None = field(repr=False, default=None)
    """The same for a function whose only argument is a vector of all inputs."""

    __signature__ = SignatureOf()

    def __repr__(self) -> str:
        if self.origin is None:
            return f"<Kernel {self.name}>"
        names = listed((one_line(a.name) for a in self.arguments), 10)
        options = "".join(f", {k}={v!r}" for k, v in self.origin.options if v not in (False, "fast"))
        return (
            f"<Kernel {self.name}({names}), backend={self.origin.backend!r}, "
            f"dtype={self.origin.dtype!r}{options}>"
        )

    def __reduce__(self) -> tuple[Callable[..., Kernel] | None, tuple[object, ...]]:
        if self.origin is None or self.origin.lower_again is None:
            raise TypeError(f"the kernel {self.name} was not made by lower(), so that it cannot be pickled")
        made = self.origin
        parts = dumps(made.graph), made.backend, made.dtype, made.options, made.graph.classes
        return made.lower_again, parts

    def __copy__(self) -> Kernel:
        return self  # it never changes

    def __deepcopy__(self, memo: dict[int, object]) -> Kernel:
        return self

    @property
    def source(self) -> str:
        """A standalone Python module; its last function is the entry."""
        return self.text if self.plain is None else self.plain().source

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The entry function, in Python: ``inspect.getsource(kernel)`` shows it."""
        return (self.inner or self.function) if self.plain is None else self.plain().__wrapped__

    if TYPE_CHECKING:

        def __call__(self, *values: Tree, **named: Tree) -> Any:
            """Evaluates the function, by position or by name."""
            raise NotImplementedError

    else:
        # A slot, so that the function stored in it is called without another Python frame.
        __slots__ = ("__call__", "__dict__", "__weakref__")

    def __post_init__(self) -> None:
        nodes = None if self.origin is None else self.origin.graph.input_nodes
        shapes = None if nodes is None else tuple(node.shape for node in nodes)
        on_host = self.origin is None or self.origin.backend != "cupy"
        quick = None if self.origin is None else self.quick  # `lower` has not finished this kernel
        fast = quick(self.function) if quick is not None and self.whole else self.function
        call: Any = CheckedCall(self.name, fast, self.arguments, self.whole, shapes, on_host)
        if quick is not None and not self.whole:
            call = quick(call)
        object.__setattr__(self, "__call__", call)

    def bind(self, x: np.ndarray, y: np.ndarray) -> Callable[[], None]:
        """A function without arguments that reads the inputs from ``x`` and writes the results to ``y``.

        It serves calls so short that passing arguments costs more than the work: compiled code works on the
        two arrays directly, without a copy.

        Args:
            x: all inputs, flat and in order: a contiguous float64 array.
            y: all results, flat and in order: a writable contiguous float64 array.

        Returns:
            The function.

        Raises:
            TypeError: an array has another type or layout.
        """
        for name, array in (("x", x), ("y", y)):
            good = isinstance(array, np.ndarray) and array.dtype == np.float64 and array.ndim == 1
            if not good or not array.flags.c_contiguous or (name == "y" and not array.flags.writeable):
                kind = getattr(array, "dtype", type(array).__name__)
                raise TypeError(f"bind takes contiguous float64 vectors; {name} is {kind}")
        if self.native is not None:
            return self.native(x, y)

        def run() -> None:
            function = self.inner or self.function
            parts = function(x) if self.packed else function(*x.tolist())
            y[...] = np.concatenate([np.ravel(part) for part in leaves_of_result(parts)])

        return run

    def to_markdown(self) -> str:
        """The plain listing as a Markdown table: each line of code beside its formula.

        Raises:
            LoweringError: the kernel was not made by `lower`.
        """
        return self._listing("markdown")

    def to_latex(self) -> str:
        """The plain listing as a LaTeX tabular; it needs the package amsmath.

        Raises:
            LoweringError: the kernel was not made by `lower`.
        """
        return self._listing("latex")

    def _listing(self, form: str) -> str:
        if self.origin is None or self.origin.listing is None:
            raise LoweringError(f"the kernel {self.name} was not made by lower(), so that it has no formulas")
        return self.origin.listing(self.origin.graph, form)

    def _repr_markdown_(self) -> str | None:
        """The listing with formulas for notebooks, if the code is short enough to read."""
        small = self.origin is not None and len(self.origin.graph.nodes) <= MAX_LISTED_NODES
        try:
            return self.to_markdown() if small else None
        except LoweringError:  # an op without a plain form: the notebook shows one line
            return None

    def save(self, path: str | Path) -> None:
        """Write the source to a file that does not need symad.

        Backend "c" writes C to files named .c or .h, with arrays written out in scalars as `c_file` does;
        to a .py file it writes array code that imports symad to compile its loops. Backend "cupy" writes CUDA
        to a file named .cu, with a function for C that launches the kernels, and its header beside it.

        Raises:
            LoweringError: a .c, .h or .cu file is asked for, and the kernel has no such form; a .py file is
                asked for, and the kernel is a C function of scalars; a file with another ending is asked for;
                or the kernel calls a user's function that cannot be imported by name from a module.
        """
        suffix = Path(path).suffix
        if suffix not in ("", ".py", ".c", ".h", ".cu"):
            raise LoweringError(
                f"{path}: code is saved as .py, .c with .h, or .cu for backend 'cupy', not as {suffix}; its "
                "text is kernel.source"
            )
        if suffix == ".py" and self.c_header:
            raise LoweringError(
                f"{path}: {self.name} is a C function; save it as .c and .h, or write Python by "
                "lower(..., backend='numpy').save(...)"
            )
        if suffix == ".cu":
            made = self.origin
            if made is None or made.standalone is None or made.backend != "cupy":
                raise LoweringError(f"{path}: {self.name} has no CUDA; backend='cupy' prints it")
            text, header = made.standalone(self)
            write_text(Path(path).with_suffix(".h"), header)
        else:
            text = self._c_text(suffix) if suffix in (".c", ".h") else self.source
        if not text:
            raise LoweringError(
                f"{path}: {self.name} has no C; backend='c' prints C if C has all functions of the graph"
            )
        if self.origin is not None:
            check_importable(self.origin.graph, path)
        write_text(path, text)

    def _c_text(self, suffix: str) -> str:
        """The text of the C file or of its header; empty if there is none."""
        texts = self.c_source, self.c_header
        made = self.origin
        if made is not None and made.standalone is not None and not self.c_header:
            if made.backend != "c":
                return ""
            if made.dtype != "float64":
                raise LoweringError(f"C that stands alone is in float64, but {self.name} is in {made.dtype}")
            texts = made.standalone(self)
        return texts[suffix == ".h"]


def leaves_of_result(result: Any) -> list[Any]:
    """The arrays in nested tuples and dicts, in order."""
    if isinstance(result, dict):
        result = tuple(result.values())
    if not isinstance(result, tuple):
        return [result]
    return [leaf for part in result for leaf in leaves_of_result(part)]


def compile_source(name: str, source: str | Sequence[str], packed: bool = False) -> Kernel:
    """Compile generated source; tracebacks show its lines.

    The source may be given in parts. All but the first and the last are helpers, which many modules have:
    their code is compiled once.
    """
    *before, last = (source,) if isinstance(source, str) else source
    text = "".join([*before, last])
    filename = f"<symad {name} {next(_numbers)}>"
    namespace: dict[str, Any] = {"__name__": f"symad_generated_{name}"}
    lines_before = "\n" * sum(part.count("\n") for part in before)
    codes = [compile(part, filename, "exec") for part in before[:1]]
    codes += [*map(_helper_code, before[1:]), compile(lines_before + last, filename, "exec")]
    for code in codes:
        exec(code, namespace)  # only text that symad's own printers made
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    return Kernel(name, text, namespace[name], namespace, packed=packed)


@lru_cache(maxsize=256)
def _helper_code(text: str) -> CodeType:
    """The code of a helper of generated modules, with a file name of its own."""
    filename = f"<symad helper {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    return compile(text, filename, "exec")
