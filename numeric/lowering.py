"""`lower`: from a graph to a callable with readable source."""

from __future__ import annotations

import importlib
import keyword
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy
from sympy.tensor.array.expressions import ArraySymbol

from symad.core.elsewhere import BACKENDS as BACKENDS_ELSEWHERE
from symad.core.elsewhere import told_arguments
from symad.core.graph import Graph
from symad.core.identifiers import brief, identifier, not_one_of, short_name
from symad.core.process import without_collecting
from symad.core.signatures import Inputs, Traceable, Wrt
from symad.errors import LoweringError
from symad.higher_order.captured import check_closed
from symad.numeric.box import GivenBox, Sides, inside, read_box
from symad.numeric.compiler.c_compiler import FULL, optimized
from symad.numeric.entry_point import (
    arguments_of,
    needs_entry_point,
    packed_by,
    parameters_of,
    plain_results,
    with_entry_point,
)
from symad.numeric.entry_point import packed as pack
from symad.numeric.kernel import Kernel, LoweredFrom
from symad.numeric.passes.algebra.definitions import write_definitions
from symad.numeric.passes.algebra.join_attention_cotangents import join_cotangents
from symad.numeric.passes.in_box import check_domain
from symad.numeric.pipelines import PassReport
from symad.numeric.plain import lower_plain
from symad.numeric.targets.sizes import check_sizes_known
from symad.ops.basic.sources import symbol_of
from symad.saving.save_load import loads
from symad.tracing import as_graph

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


# ---- backends ------------------------------------------------------------------------------------


BACKENDS = {
    "numpy": "symad.numeric.numpy_arrays.lower",
    "c": "symad.numeric.scalars.lower_c",
    "runs": "symad.numeric.scalars.lower_runs",
    "cupy": "symad.gpu.lower",
}
"""Backend name -> module with a function ``lower(graph, dtype, packed) -> Kernel``.

With ``packed`` the kernel of a scalar graph may take all inputs in one vector; its field ``packed`` says so.
"""


def load_backend(name: str) -> object:
    """The module of a backend.

    Raises:
        LoweringError: there is no backend of this name, or it is not installed.
    """
    if name not in BACKENDS:
        other = BACKENDS_ELSEWHERE.get(str(name), "'runs' is for large scalar functions, 'cupy' for a GPU")
        raise LoweringError(f"{not_one_of('backend', name, BACKENDS)}; {other}")
    try:
        return importlib.import_module(BACKENDS[name])
    except ModuleNotFoundError as error:
        raise LoweringError(
            f"backend {name!r} is not available here ({error}); backend='numpy' is"
        ) from error


DTYPES = ("float64", "float32")
STYLES = ("fast", "plain")
TELLING = ("numpy", "c")
"""Backends that report each pass."""


@told_arguments()
@without_collecting
def lower(
    f: Traceable,
    backend: str = "numpy",
    dtype: Any = "float64",
    packed: bool = False,
    style: str = "fast",
    inputs: Inputs | None = None,
    wrt: Wrt | None = None,
    log: Callable[[str], None] | None = None,
    name: str | None = None,
    optimize: int = FULL,
    box: GivenBox | None = None,
) -> Kernel:
    """``f`` as fast code: a callable with ``.source`` and ``.save(path)``.

    Args:
        f: a function, in any form that `symad.trace` takes; a Graph keeps its order of inputs.
        backend: "numpy"; "c", compiled for this machine (scalar graphs as one C function, array graphs as
            NumPy code with compiled kernels and loops); "runs" for large scalar graphs; "cupy" on a GPU.
        dtype: "float64" or "float32" (on a GPU also the half precisions), as a name or as a dtype of NumPy,
            PyTorch or JAX.
        packed: a call for scipy.optimize, k(x, *args): one flat vector x holds the inputs that a derivative
            is taken by, in the order of its ``wrt``, and the other inputs follow as SciPy's ``args``. A
            Hessian-vector product is k(x, v, *args) with the direction as a flat vector v. Results: a number
            for a scalar function, (m,) for a vector-valued one, one flat vector in the order of x for a
            gradient or a product, (m, N) for a Jacobian, (N, N) for a Hessian, (value, flat gradient) for
            value_and_gradient.
        style: "fast", or "plain" for backend "numpy". Plain code is for reading, teaching and checking: it
            has one line for each mathematical step.
        inputs: order and grouping of the arguments, as in `symad.trace`.
        wrt: with ``packed``, the inputs that x holds; by default those the derivative is taken by, or all.
        log: a function that is called with a line for each pass, such as ``print``; backends "numpy" and "c".
        name: the name of the function in the generated code, by default that of ``f``; in C it is preceded
            by ``symad_``.
        optimize: how much the C compiler optimizes, for backend "c". 2 makes the fastest code. 1 compiles
            in half of the time, and calls take 1 to 2.4 times as long; 0 compiles in a sixth, and calls take
            twice as long or more. Compiled code is kept on disk, so each kernel is compiled once.
        box: the smallest and the largest value of inputs, by symbol or name, or of every element of an array.
            They may be infinite. Branches, guards and scalings that the box decides are left out, and
            differences of inputs that are near each other count as exact. The header of the code tells the
            box. Calls do not check it: at points outside they compute what is printed, which may be wrong.

    Returns:
        A `Kernel`, which is called as ``f`` is, with numbers and arrays.

    Raises:
        LoweringError: unknown backend, dtype or style, an op without a form there, wrt without packed,
            log for another backend, a name that is none in Python, another level of optimize; a box of what
            is no input, an empty one, or one in which a function has no value.

    Example:
        >>> import sympy
        >>> from symad.numeric import lower
        >>> x = sympy.Symbol("x", real=True)
        >>> softplus = lower(sympy.log(1 + sympy.exp(x)))
        >>> softplus(800.0)
        800.0
        >>> "softplus" in softplus.source
        True
        >>> shift = lower(sympy.log(x + 1) - sympy.log(x), box={x: (1, 10)})
        >>> "log1p(1.0/x)" in shift.source, "where(" in shift.source
        (True, False)
    """
    number = _checked(backend, dtype, style, packed, wrt is not None, log is not None, name, optimize)
    whole = as_graph(f, wrt, inputs)
    whole = whole if name is None else whole.named(name)
    check_closed(whole, "lower")
    check_sizes_known(whole)
    whole = whole if wrt is None else packed_by(whole, wrt)
    sides = read_box(whole, box or {})
    if sides:
        check_domain(whole, sides)
    options = (("packed", packed), ("style", style), *((("optimize", optimize),) if optimize < FULL else ()))
    named = tuple((short_name(symbol_of(node)), ends) for node, ends in sides.items())
    options = (*options, ("box", named)) if sides else options
    origin = LoweredFrom(whole, backend, number, options, again, listing, standalone)
    graph, parameters = pack(whole) if packed else (plain_results(whole), parameters_of(whole))
    structure = graph.structure if packed else whole.structure
    graph = write_definitions(graph)
    report: list[PassReport] | None = None if log is None else []
    kernel = _printed(graph, origin, packed and len(parameters) == 1, sides, report)
    if log is not None:
        for line in report or ():
            log(str(line))
    if not kernel.packed and needs_entry_point(parameters, structure):
        kernel = with_entry_point(kernel, parameters, structure, "cupy" if backend == "cupy" else "numpy")
    integers = () if packed or whole.grouping else _integers(whole)
    return replace(kernel, arguments=arguments_of(parameters), origin=origin, whole=integers)


def _printed(
    graph: Graph, origin: LoweredFrom, one_vector: bool, sides: Sides, report: list[PassReport] | None
) -> Kernel:
    """The kernel of a function of all inputs, which it may take in ``one_vector``."""
    options: dict[str, Any] = dict(origin.options)
    with inside(sides):
        if options["style"] == "plain":
            return lower_plain(graph, origin.dtype, report)
        module: Any = load_backend(origin.backend)
        told = () if report is None else (report,)
        with optimized(options.get("optimize", FULL)):
            kernel: Kernel = module.lower(join_cotangents(graph), origin.dtype, one_vector, *told)
    if sides and kernel.plain is not None:
        return replace(kernel, plain=partial(_plain_inside, kernel.plain, sides))
    return kernel


def _checked(
    backend: object,
    dtype: DTypeLike,
    style: str,
    packed: bool,
    selects: bool,
    logs: bool,
    name: str | None,
    optimize: int,
) -> str:
    """The name of the dtype, if all options of `lower` go together.

    Raises:
        LoweringError: they do not.
    """
    if not isinstance(backend, str):
        raise LoweringError(
            f"backend={brief(backend)} is not a backend's name; give the arguments as lower(f, inputs=[x, y])"
        )
    if logs and backend not in TELLING:
        raise LoweringError(f"log reports the passes of backends {', '.join(TELLING)}, not of {backend!r}")
    if selects and not packed:
        raise LoweringError("wrt selects the inputs of the packed vector; give packed=True, or leave wrt out")
    if style not in STYLES or (style == "plain" and backend != "numpy"):
        raise LoweringError(
            f"style={brief(style)} with backend={backend!r}: the styles are {', '.join(map(repr, STYLES))}, "
            "and 'plain' is printed for backend 'numpy'"
        )
    if name is not None and not _is_name(name):
        raise LoweringError(f"name={brief(name)} is not a name that a function in Python can have")
    if optimize not in range(FULL + 1):
        raise LoweringError(not_one_of("optimize", optimize, range(FULL + 1)))
    number = dtype_name(dtype)
    if number not in DTYPES and backend != "cupy":
        raise LoweringError(not_one_of("dtype", number, DTYPES))
    return number


def _plain_inside(plain: Callable[[], Kernel], sides: Sides) -> Kernel:
    """The NumPy form of compiled code, which is printed for the same box."""
    with inside(sides):
        return plain()


@lru_cache(maxsize=64)
def again(
    text: str,
    backend: str,
    dtype: str,
    options: tuple[tuple[str, Any], ...],
    classes: tuple[type[Any], ...] = (),
) -> Kernel:
    """Lowers a kernel that arrives from another process; a kernel sent with every task is lowered once."""
    chosen = dict(options)
    box = dict(chosen.pop("box", ()))
    return lower(loads(text, classes), backend, dtype, box=box, **chosen)


def listing(graph: Graph, form: str) -> str:
    """The plain listing of a graph, each line of code beside its formula: "markdown" or "latex"."""
    from symad.numeric.listing import to_latex, to_markdown  # loaded on use: it loads the typesetter

    return to_markdown(graph) if form == "markdown" else to_latex(graph)


def standalone(kernel: Kernel) -> tuple[str, str]:
    """A kernel as standalone C, or CUDA: source and header."""
    assert kernel.origin is not None
    if kernel.origin.backend == "cupy":
        module: Any = load_backend("cupy")
        made: tuple[str, str] = module.standalone(kernel)
        return made
    from symad.numeric.standalone_c import c_file  # loaded on use

    file = c_file(kernel.origin.graph)
    return file.source, file.header


def _integers(graph: Graph) -> tuple[int, ...]:
    """Positions of the inputs that are integers."""
    return tuple(k for k, symbol in enumerate(graph.inputs) if _is_integer(symbol))


def _is_integer(symbol: sympy.Basic) -> bool:
    """Whether a symbol is declared as an integer.

    SymPy derives a property that is not declared from all the others, which takes longer than many a pass.
    """
    if isinstance(symbol, (sympy.Symbol, sympy.IndexedBase)):
        return bool(symbol.assumptions0.get("integer"))
    return not isinstance(symbol, ArraySymbol) and bool(getattr(symbol, "is_integer", False))


def _is_name(name: object) -> bool:
    """Whether a text is a name that generated code takes as it is."""
    return isinstance(name, str) and not keyword.iskeyword(name) and bool(name) and name == identifier(name)


def dtype_name(dtype: DTypeLike) -> str:
    """The name of a dtype, given as text, as NumPy's or JAX's dtype, or as torch.float32."""
    if isinstance(dtype, str) or type(dtype).__module__ == "torch":
        return str(dtype).removeprefix("torch.")
    try:
        return np.dtype(dtype).name
    except TypeError:
        raise LoweringError(not_one_of("dtype", dtype, DTYPES)) from None
