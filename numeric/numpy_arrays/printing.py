"""What the rules of ops and the helpers of statements may ask of a printer.

Rules stand below the printers that call them, and know a printer by these protocols alone. `Printing` is the
part of `ArrayPrinter` that rules for every library use; `InPlacePrinting` has what in-place arithmetic adds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import sympy
from numpy.typing import NDArray

from symad.core.dims import Dim
from symad.core.graph import Graph, Node
from symad.numeric.backends import ArrayLibrary
from symad.numeric.modules.names import Names
from symad.numeric.numpy_arrays.plan import Plan
from symad.numeric.numpy_arrays.texts import Name, Turned
from symad.numeric.pipelines import ProgramPass
from symad.numeric.program.expressions import Expression, Index, Interval, Position, Value
from symad.numeric.program.statements import Assign
from symad.numeric.scheduling.blocks import NodeBlock
from symad.numeric.scheduling.roles import Roles
from symad.numeric.targets.target import MatrixProduct, Target, Text
from symad.ops.sparse.csr import IntArray


class Expressions(Protocol):
    """The writer of expressions in the module, an `ArrayWriter`."""

    target: Target
    """The array library, as a target."""
    named: dict[Value, str]
    """The names of values."""

    def expression(self, node: Node) -> Text:
        """The text of a node, from the texts of its arguments."""

    def product(self, node: Node) -> MatrixProduct | None:
        """The matrix product that a contraction is; None for other contractions."""

    def helper(self, function: Callable[..., Any]) -> str:
        """The name of a helper function, which the module will contain."""

    def text(self, expression: Expression) -> Text:
        """An expression with its precedence."""

    def position(self, position: Position) -> Text:
        """A position on an axis."""

    def interval(self, interval: Interval, length: Dim) -> str:
        """``start:stop:step``, in its shortest form."""

    def places(self, expression: Index) -> list[str]:
        """The texts between the brackets of an index."""


class Placement(Protocol):
    """The statements of a program by the nodes that they compute, a `Placed`."""

    steps: dict[Node, list[Assign]]
    """The statements that compute a node; the last one computes its value."""
    texts: dict[Value, str]
    """The texts of values without a node."""

    @property
    def nodes(self) -> Mapping[Value, Node]:
        """The nodes of the program's values."""

    @property
    def parts(self) -> Collection[Value | None]:
        """The arrays and views that values are written to."""

    def kept(self, node: Node) -> bool:
        """Whether the memory of a node is kept from call to call."""


class Printing(Protocol):
    """The printer of one module, for every array library."""

    library: ArrayLibrary
    """The array library."""
    np: str
    """The name of the array library in the module."""
    dtype: str
    """The floating-point type of arrays."""
    type_text: str
    """The text of this type."""
    names: Names
    """The names of the module."""
    imports: set[str]
    """The imports of the module."""
    helpers: dict[str, str]
    """The source of helper functions, by name."""
    settings: list[str]
    """Statements after the constants; the module executes them once."""
    symbols: dict[sympy.Basic, str]
    """The names of inputs and dimensions."""
    sizes: set[sympy.Symbol]
    """The dimensions that statements read so far."""
    serial: int
    """The number of names given to values so far."""
    text: dict[Node, str]
    """The texts of the nodes that are printed so far."""
    scores: dict[Any, int]
    """The numbers of the module's score functions of attention."""
    labels: dict[Node, str]
    """The names of results by their roles."""
    roles: Roles
    """The names of values that variables of the user hold."""
    before: list[str]
    """Statements that must precede the statement of the expression being printed."""
    bounds: Mapping[sympy.Symbol, int]
    """The largest values of dimensions that change from block to block."""
    row_numbers: set[Node]
    """Nodes that are read as row numbers only."""
    nesting: int
    """The number of functions and loops around the statement being printed."""
    block: NodeBlock
    """The nodes of the program that is printed."""
    users: dict[Node, list[Node]]
    """The readers of each node."""
    floats: set[Node]
    """Nodes with the module's dtype: some inputs of the body being printed, and results in rows."""
    whole: set[str]
    """The names of the rows that a loop's step writes to; they are contiguous."""
    fixed: dict[str, Turned | Name]
    """For a matrix that no step of the loops around changes, its transpose."""
    slots: dict[Node, str]
    """For a node, the text of the array or view that it is written to."""
    views: list[Name]
    """The names of views that several operations write to."""
    steps: dict[Value, Plan]
    """The plans of steps and functions, each under the first value that it is given."""
    functions: dict[Value, str]
    """The names of functions that have been printed."""
    function_results: dict[str, Sequence[Node]]
    """The nodes that they return, by name."""
    called_names: list[str]
    """Those that the statement being printed calls."""
    computed: dict[int, Node]
    """The results of the statement being printed, by their numbers."""
    rows: list[Name]
    """Names that loops assigned to arrays and views; they are set to None when memory is freed."""

    def dim(self, dim: Dim) -> str:
        """A dimension as an operand of an expression."""

    def bare(self, dim: Dim) -> str:
        """A dimension as a whole expression, between commas or colons."""

    def dim_name(self, symbol: sympy.Symbol) -> str:
        """The name of a dimension, which counts as read from now on."""

    def dims(self, shape: Sequence[Dim]) -> str:
        """A shape as a tuple display."""

    def helper(self, name: str, source: str) -> str:
        """Add a helper function to the module. Returns its name."""

    def constant_array(self, array: NDArray[Any]) -> Name:
        """Add a constant array to the module. Returns its name."""

    def constant_text(self, text: str, stem: str = "constant") -> Name:
        """Add a constant to the module by its expression. Returns its name, the same for equal texts."""

    def value_name(self, stem: str = "v") -> Name:
        """A fresh name for an intermediate value."""

    def called(self, stem: str) -> Name:
        """A fresh name after the name stem; numbered if the stem is empty."""

    def own_name(self, stem: str = "") -> Name:
        """A fresh name that only the statements of one node use."""

    def name_for(self, node: Node) -> Name:
        """A fresh name for the value of a node; a view of the same shape keeps the stem of its array."""

    def result_names(self, numbers: Iterable[int]) -> list[str]:
        """Fresh names for results of the statement being printed; ``_`` for those that it does not have."""

    def names_inside(self, first: int) -> list[Name]:
        """The names of large arrays in the body being printed with a number above ``first``."""

    def stem_of_text(self, node: Node) -> str:
        """The name stem in the text of a node; empty if the text is no name."""

    def label(self, node: Node) -> str:
        """The name stem of a node that does not depend on the names of arguments; may be empty."""

    def prepared(self, graph: Graph) -> Graph:
        """A graph for a nested function, after the passes that the module's own graph went through."""

    def inside(self, inputs: Mapping[Node, str], repeated: bool = True) -> AbstractContextManager[None]:
        """Print the body of a loop or function; only its inputs have texts at the start."""

    def numbers_typed(self, nodes: Sequence[Node], texts: Sequence[str]) -> list[str]:
        """The texts of arguments, with constants and dimensions converted to the dtype."""

    def text_of(self, expression: Expression) -> str:
        """The text of a value or of a constant."""

    def node_of(self, expression: Expression) -> Node | None:
        """The node of a value or of a constant; None for others."""

    def knowing(self, given: Mapping[Node, Node]) -> AbstractContextManager[None]:
        """Print the step of a loop; for its inputs ``given`` has the nodes outside."""

    def order(self, outputs: Sequence[Node]) -> list[Node]:
        """The nodes from which ``outputs`` are computed, in the order of their statements."""

    def passes(self, places: Sequence[Value | None]) -> tuple[ProgramPass, ...]:
        """The passes on the program of a block before it is printed."""

    def know(self, plan: Plan) -> None:
        """Set the attributes that describe the nodes of a plan."""

    def as_before(self) -> AbstractContextManager[None]:
        """Restore the attributes of the current plan at the end."""

    def statements(self, outputs: Sequence[Node], into: Sequence[Name | None] = ()) -> list[str]:
        """The statements that compute ``outputs``, and the nodes that these need."""

    def lines_of(self, plan: Plan, rooms: Mapping[Value, Name]) -> list[str]:
        """The lines of a plan. ``rooms``: the names of the arrays that results are written to."""

    def in_place_of(self, stands_for: Node) -> tuple[list[str], str]:
        """The statements of a definition, and the text of its result."""

    def transposed(self, matrix: str) -> str:
        """The transpose of a matrix."""

    def sum_as_product(self, arg: Node, axes: tuple[int, ...]) -> MatrixProduct | None:
        """The sum of an array over some axes as a matrix product; None where that is not faster."""

    @property
    def in_rows(self) -> bool:
        """Whether loops iterate over the rows of arrays."""

    @property
    def writer(self) -> Expressions:
        """The writer of expressions."""

    @property
    def placed(self) -> Placement:
        """The statements of the program, by the nodes that they compute."""


class InPlacePrinting(Printing, Protocol):
    """A printer whose programs say which arrays are overwritten."""

    depth: int
    """The number of loops around the statement being printed."""

    @property
    def itemsize(self) -> int:
        """The bytes of an element of the module's arrays."""

    def holds_floats(self, node: Node) -> bool:
        """Whether an array is known to have the module's dtype."""

    def number(self, text: str, made: Expression | None = None) -> str:
        """The text of a number that is combined with arrays."""

    def taken_line(self, values: str, index: IntArray, entries: str) -> str:
        """The statement that gathers entries from an array."""

    def multiplication(self) -> str:
        """The name of the function that multiplies matrices."""

    def product_text(self, product: MatrixProduct) -> str:
        """A matrix product as an expression."""

    def product_into(self, product: MatrixProduct, place: str) -> str:
        """The statement that writes the product of two named matrices into an array."""
