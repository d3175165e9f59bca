"""Scalar values as Python expressions, with names that `math` and NumPy both bind."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy
from sympy.codegen.cfunctions import expm1, log1p
from sympy.codegen.numpy_nodes import logaddexp

from symad import special
from symad.core.graph import Node, Op, topological
from symad.core.questions import definition, question
from symad.errors import LoweringError
from symad.evaluation.number_domains import as_float
from symad.evaluation.numpy_names import NUMPY_NAMES
from symad.library.scalar_functions import sigmoid
from symad.numeric.modules.names import Names
from symad.numeric.modules.users_functions import users_call
from symad.ops.arrays.sources import Constant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.arithmetic import Add, Mul
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Logic, Select

if TYPE_CHECKING:
    Text = str
    Lines = list[str]
else:  # plum sees Any: it dispatches on the op alone, and converts no return values
    Text = Lines = Any

WIDTH = 24
"""Longer sums and products are split, so that no expression nests deeply."""

SHORT = 60
"""Expressions of so many characters are written where their value is used, if that is one place."""

# name in the body -> (binding for single floats, binding for arrays)
SCALAR_FUNCTIONS: dict[str, tuple[str, str]] = {
    **{
        name: (f"math.{name}", f"np.{name}")
        for name in (
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
            "tanh",
            "exp",
            "log",
            "sqrt",
            "floor",
            "expm1",
            "log1p",
        )
    },
    "asin": ("math.asin", "np.arcsin"),
    "acos": ("math.acos", "np.arccos"),
    "atan": ("math.atan", "np.arctan"),
    "atan2": ("math.atan2", "np.arctan2"),
    "asinh": ("math.asinh", "np.arcsinh"),
    "acosh": ("math.acosh", "np.arccosh"),
    "atanh": ("math.atanh", "np.arctanh"),
    "floor": ("_floor", "np.floor"),
    "ceil": ("_ceil", "np.ceil"),
    "absolute": ("abs", "np.abs"),
    "power": ("math.pow", "np.power"),
    "logaddexp": ("_logaddexp", "np.logaddexp"),
    "sigmoid": ("_sigmoid", "_sigmoid_of_arrays"),
    "sign": ("_sign", "np.sign"),
    "where": ("_where", "np.where"),
    "maximum": ("_maximum", "_maximum_of_arrays"),
    "minimum": ("_minimum", "_minimum_of_arrays"),
    "logical_and": ("_all_of", "_all_of_arrays"),
    "logical_or": ("_any_of", "_any_of_arrays"),
    "logical_not": ("_not", "np.logical_not"),
    "logical_xor": ("_xor", "_xor_of_arrays"),
    "pack": ("_pack", "_pack_arrays"),
    "pack_at": ("_pack_at", "_pack_arrays_at"),
    "sparse": ("_sparse", "_sparse_or_dense"),
    "array": ("np.array", "np.array"),
    "nan": ("math.nan", "np.nan"),
    "inf": ("math.inf", "np.inf"),
}

MATH_NAMES: dict[Any, str] = {
    sympy.Abs: "absolute",
    sympy.ceiling: "ceil",
    sympy.Max: "maximum",
    sympy.Min: "minimum",
    log1p: "log1p",
    expm1: "expm1",
    logaddexp: "logaddexp",
    sigmoid: "sigmoid",
    **{
        getattr(sympy, name): name
        for name in SCALAR_FUNCTIONS
        if hasattr(sympy, name) and name not in ("sqrt", "power", "ceil", "floor", "sign")
    },
    sympy.floor: "floor",
    sympy.sign: "sign",
}

HELPERS: dict[str, str] = {
    "_sign": """def _sign(x):
    return x if x != x or x == 0.0 else math.copysign(1.0, x)
""",
    "_floor": """def _floor(x):
    return float(math.floor(x))
""",
    "_ceil": """def _ceil(x):
    return float(math.ceil(x))
""",
    "_where": """def _where(condition, a, b):
    return a if condition else b
""",
    "_logaddexp": """def _logaddexp(a, b):
    if a == b:
        return a + 0.6931471805599453
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))
""",
    "_sigmoid": """def _sigmoid(x):
    if x < 0.0:
        e = math.exp(x)
        return e / (1.0 + e)
    return 1.0 / (1.0 + math.exp(-x))
""",
    "_sigmoid_of_arrays": """def _sigmoid_of_arrays(x):
    return 1.0 / (1.0 + np.exp(-x))
""",
    "_maximum": """def _maximum(*values):
    best = values[0]
    for value in values:
        if value > best or value != value:
            best = value
    return best
""",
    "_minimum": """def _minimum(*values):
    best = values[0]
    for value in values:
        if value < best or value != value:
            best = value
    return best
""",
    "_maximum_of_arrays": """def _maximum_of_arrays(*values):
    best = values[0]
    for value in values[1:]:
        best = np.maximum(best, value)
    return best
""",
    "_minimum_of_arrays": """def _minimum_of_arrays(*values):
    best = values[0]
    for value in values[1:]:
        best = np.minimum(best, value)
    return best
""",
    "_all_of": """def _all_of(*conditions):
    return all(conditions)
""",
    "_any_of": """def _any_of(*conditions):
    return any(conditions)
""",
    "_not": """def _not(condition):
    return not condition
""",
    "_xor": """def _xor(*conditions):
    return sum(map(bool, conditions)) % 2 == 1
""",
    "_all_of_arrays": """def _all_of_arrays(*conditions):
    result = conditions[0]
    for condition in conditions[1:]:
        result = np.logical_and(result, condition)
    return result
""",
    "_any_of_arrays": """def _any_of_arrays(*conditions):
    result = conditions[0]
    for condition in conditions[1:]:
        result = np.logical_or(result, condition)
    return result
""",
    "_xor_of_arrays": """def _xor_of_arrays(*conditions):
    result = conditions[0]
    for condition in conditions[1:]:
        result = np.logical_xor(result, condition)
    return result
""",
    "_pack": """def _pack(entries, shape):
    return np.array(entries, dtype=np.float64).reshape(shape)
""",
    "_pack_arrays": """def _pack_arrays(entries, shape):
    parts = np.broadcast_arrays(*entries)
    return np.stack(parts, axis=-1).reshape(parts[0].shape + shape)
""",
    "_pack_at": """def _pack_at(entries, positions, shape):
    packed = np.zeros(math.prod(shape))
    packed[positions] = entries
    return packed.reshape(shape)
""",
    "_pack_arrays_at": """def _pack_arrays_at(entries, positions, shape):
    if not entries:
        return np.zeros(shape)
    parts = np.stack(np.broadcast_arrays(*entries), axis=-1)
    packed = np.zeros((*parts.shape[:-1], math.prod(shape)), dtype=parts.dtype)
    packed[..., positions] = parts
    return packed.reshape(parts.shape[:-1] + shape)
""",
}

HELPERS["_sparse"] = """def _sparse(entries, structure):
    matrix = copy.copy(structure)
    matrix.data = np.array(entries, dtype=np.float64)
    return matrix
"""

HELPERS["_sparse_or_dense"] = """def _sparse_or_dense(entries, structure):
    values = np.stack(np.broadcast_arrays(*entries), axis=-1) if entries else np.zeros(0)
    if values.ndim == 1:
        matrix = copy.copy(structure)
        matrix.data = values
        return matrix
    places = structure.tocoo().coords
    dense = np.zeros((*values.shape[:-1], *structure.shape), dtype=values.dtype)
    dense[(..., *places)] = values
    return dense
"""


class ScalarPrinter:
    """The names given to values, and which functions the body uses."""

    def __init__(self, names: Names) -> None:
        """``names``: identifiers of the module."""
        self.names = names
        self.text: dict[Node, str] = {}
        self.bindings: dict[str, tuple[str, str]] = {}
        self.helper_sources: dict[str, str] = {}
        self.imports: set[str] = {"import types", "import math", "import numpy as np"}
        self.constants: list[str] = []
        self.uses: dict[Node, int] = {}
        """How often the text of a value is written; values that are not counted get a name."""
        self._serial = 0
        self._names_of_heads: dict[Any, str] = {}

    def value_name(self) -> str:
        """A fresh name for an intermediate value."""
        while True:
            self._serial += 1
            name = f"v{self._serial}"
            if name not in self.names.taken:
                return name

    def constant(self, text: str) -> str:
        """A module-level constant; its name, bound for floats and arrays alike."""
        name = f"constant_{len(self.constants) + 1}"
        self.constants.append(f"_{name} = {text}")
        self.bindings[name] = (f"_{name}", f"_{name}")
        return name

    np = "np"

    def helper(self, name: str, source: str) -> str:
        """Add a helper function to the module; its name."""
        self.helper_sources[name] = source
        return name

    def use(self, name: str) -> str:
        """Note that the body uses a function of `SCALAR_FUNCTIONS`; its name."""
        self.bindings[name] = SCALAR_FUNCTIONS[name]
        for binding in SCALAR_FUNCTIONS[name]:
            if binding in HELPERS:
                self.helper_sources[binding] = HELPERS[binding]
        return name

    def use_numpy(self, head: Any) -> str:
        """Note the use of a function that only NumPy or SciPy has."""
        full = NUMPY_NAMES.get(head, "")
        module, _, attribute = full.rpartition(".")
        name = self._names_of_heads.get(head) or self.names.unique(head.__name__)
        self._names_of_heads[head] = name
        if not full:
            users = users_call(head, name)
            self.imports |= {users.imported, "from typing import Any"}
            self.helper_sources["elementwise"] = inspect.getsource(special.elementwise)
            self.helper_sources[name] = users.source
            self.bindings[name] = (name, name)
        elif module == "symad.special":
            source = inspect.getsource(getattr(special, attribute))
            self.helper_sources[attribute] = source
            self.imports |= {"from functools import reduce"} if "reduce(" in source else set()
            self.imports |= {"from typing import Any"}
            self.bindings[name] = (attribute, attribute)
        else:
            self.imports.add(
                "import scipy.special" if module == "scipy.special" else "import numpy as np"
            )
            spelled = full.replace("numpy.", "np.", 1) if module == "numpy" else full
            self.bindings[name] = (spelled, spelled)
        return name

    def tables(self) -> tuple[set[str], str, str, list[str]]:
        """Imports, the two binding tables as dict displays, and the helpers' source lines."""
        scalar = ", ".join(f'"{name}": {pair[0]}' for name, pair in sorted(self.bindings.items()))
        array = ", ".join(f'"{name}": {pair[1]}' for name, pair in sorted(self.bindings.items()))
        helpers = [
            line
            for source in self.helper_sources.values()
            for line in [*source.rstrip().split("\n"), "", ""]
        ]
        return self.imports, "{" + scalar + "}", "{" + array + "}", helpers


def statement(node: Node, printer: ScalarPrinter) -> list[str]:
    """The statements that compute a node; constants are written where they are used."""
    if isinstance(node.op, Constant):
        printer.text[node] = literal(node.op.value, printer)
        return []
    lines: list[str] = []
    expression = scalar_form(node.op, node, printer, lines)
    if printer.uses.get(node) == 1 and len(expression) <= SHORT and not lines:
        printer.text[node] = f"({expression})"
        return []
    name = printer.value_name()
    printer.text[node] = name
    return [*lines, f"{name} = {expression}"]


def count_uses(roots: Sequence[Node]) -> dict[Node, int]:
    """How often the text of each value is written; values that must have a name count twice."""
    found = dict.fromkeys(roots, 2)
    for node in topological(roots):
        small = isinstance(node.op, Pow) and constant_value(node.args[1]) is not None
        once = isinstance(node.op, (Add, Mul, Apply, Compare, Logic, Select)) or (
            isinstance(node.op, Pow) and not small
        )
        for arg in node.args:
            found[arg] = found.get(arg, 0) + (1 if once else 2)
    return found


def literal(value: Any, printer: ScalarPrinter) -> str:
    """A constant as it is written in an expression."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, Fraction) and max(abs(value.numerator), value.denominator) < 2**63:
        return f"({value.numerator}/{value.denominator})"
    number = as_float(value)  # of ints too: products of an int and a float take Python twice as long
    if number != number:
        return printer.use("nan")
    if abs(number) == float("inf"):
        return printer.use("inf") if number > 0 else f"(-{printer.use('inf')})"
    text = repr(number)
    return f"({text})" if number < 0 else text


@question
def scalar_form(op: Op, node: Node, printer: ScalarPrinter, lines: Lines) -> Any:
    """The Python expression of a scalar node; longer ones put statements into ``lines`` first."""


@scalar_form.dispatch
def by_definition(op: Op, node: Node, printer: ScalarPrinter, lines: Lines) -> Text:
    """An op without a form of its own is written as what it stands for."""
    stands_for = definition(op, node)
    if not isinstance(stands_for, Node):
        raise LoweringError(f"the op {type(op).__name__} has no form in scalar code")
    for inner in topological([stands_for]):
        if inner not in printer.text:
            lines.extend(statement(inner, printer))
    return printer.text[stands_for]


def _joined(parts: list[str], separator: str, printer: ScalarPrinter, lines: list[str]) -> str:
    """Many operands in pieces of `WIDTH`, as a balanced tree."""
    while len(parts) > WIDTH:
        pieces = []
        for k in range(0, len(parts), WIDTH):
            name = printer.value_name()
            lines.append(f"{name} = {separator.join(parts[k : k + WIDTH])}")
            pieces.append(name)
        parts = pieces
    return separator.join(parts)


@scalar_form.dispatch
def add_scalar(op: Add, node: Node, printer: ScalarPrinter, lines: Lines) -> Text:
    pairs = list(zip(op.signs, node.args, strict=True))
    if len(pairs) <= WIDTH:
        first = "-" if op.signs[0] == -1 else ""
        text = first + printer.text[node.args[0]]
        for sign, arg in pairs[1:]:
            text += (" + " if sign == 1 else " - ") + printer.text[arg]
        return text
    positive = _joined([printer.text[a] for s, a in pairs if s == 1], " + ", printer, lines)
    negative = _joined([printer.text[a] for s, a in pairs if s == -1], " + ", printer, lines)
    if not negative:
        return positive
    return f"{positive} - ({negative})" if positive else f"-({negative})"


@scalar_form.dispatch
def mul_scalar(op: Mul, node: Node, printer: ScalarPrinter, lines: Lines) -> Text:
    over = [printer.text[a] for p, a in zip(op.powers, node.args, strict=True) if p == 1]
    under = [printer.text[a] for p, a in zip(op.powers, node.args, strict=True) if p == -1]
    top = _joined(over, "*", printer, lines) if over else "1.0"
    if not under:
        return top
    bottom = _joined(under, "*", printer, lines)
    return f"{top}/{bottom}" if len(under) == 1 else f"{top}/({bottom})"


@scalar_form.dispatch
def pow_scalar(op: Pow, node: Node, printer: ScalarPrinter, lines: Lines) -> Text:
    base, exponent = (printer.text[a] for a in node.args)
    value = constant_value(node.args[1])
    if value in (2, 3, 4) and constant_value(node.args[0]) is None:
        return "*".join([base] * int(value))
    if value == Fraction(1, 2):
        return f"{printer.use('sqrt')}({base})"
    if value == Fraction(3, 2):
        return f"{base}*{printer.use('sqrt')}({base})"
    return f"{printer.use('power')}({base}, {exponent})"


@scalar_form.dispatch
def apply_scalar(op: Apply, node: Node, printer: ScalarPrinter, lines: Lines) -> Text:
    arguments = ", ".join(printer.text[a] for a in node.args)
    if op.head in MATH_NAMES:
        return f"{printer.use(MATH_NAMES[op.head])}({arguments})"
    return f"{printer.use_numpy(op.head)}({arguments})"


@scalar_form.dispatch
def compare_scalar(op: Compare, node: Node, printer: ScalarPrinter, lines: Lines) -> Text:
    a, b = (printer.text[arg] for arg in node.args)
    return f"{a} {op.relation} {b}"


@scalar_form.dispatch
def logic_scalar(op: Logic, node: Node, printer: ScalarPrinter, lines: Lines) -> Text:
    arguments = ", ".join(printer.text[a] for a in node.args)
    return f"{printer.use('logical_' + op.kind)}({arguments})"


@scalar_form.dispatch
def select_scalar(op: Select, node: Node, printer: ScalarPrinter, lines: Lines) -> Text:
    arguments = ", ".join(printer.text[a] for a in node.args)
    return f"{printer.use('where')}({arguments})"
