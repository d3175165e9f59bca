"""The text of a nest: numbers per row, and loops over the elements of a row.

Loop p computes the sums whose terms depend on the sums of earlier loops, and the results that depend on no
later sum. Values that a later loop needs again are recomputed there from arrays that stay in the cache; but a
value with a costly function waits in the memory of a result that is written later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from symad.core.dims import same_shape
from symad.core.graph import Graph, Node, op_of
from symad.core.nodes import Moved
from symad.core.questions import Nodes
from symad.higher_order.scan import Local
from symad.numeric.fusion.c_expressions import KernelBody
from symad.numeric.fusion.nest import Nest, is_reduction, is_row_dot, repeats_columns
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.arithmetic import Mul
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import Constant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select


@dataclass(frozen=True)
class RunningTotal:
    """A number that a loop accumulates: the sum ("+"), the "max" or the "min" of a value."""

    name: str
    kind: str
    value: str

    @property
    def line(self) -> str:
        """The statement for one element."""
        return joined(self.name, self.kind, self.value)


def joined(name: str, kind: str, value: str) -> str:
    """The statement that joins a value to a number of this kind; an extreme ignores NaN."""
    if kind == "+":
        return f"{name} += {value};"
    return f"{name} = {value} {'>' if kind == 'max' else '<'} {name} ? {value} : {name};"


@dataclass(frozen=True)
class RowLoop:
    """One loop over the elements of a row.

    Attributes:
        given: the statements that read elements.
        lines: the statements that compute values.
        near: these statements with branch-free functions that may set ``far`` (`NativeBody.near`).
        totals: the numbers that are accumulated.
        stores: the values of elements of results, by the number of the result.
    """

    given: Sequence[str]
    lines: Sequence[str]
    near: Sequence[str]
    totals: Sequence[RunningTotal]
    stores: Sequence[tuple[int, str]]


class NestText(ABC):
    """The text of one nest; a target defines how arrays are read and how a loop over a row is written."""

    skips = False
    """Whether sums are left out that no branch reads which is taken."""

    def __init__(self, nest: Nest, c: KernelBody) -> None:
        """Find the order of the nodes and the level of each."""
        self.nest, self.body, self.full, self.c = nest, nest.body, nest.full, c
        self.order = self.body.nodes
        self.sums = [n for n in self.order if is_reduction(n, nest)]
        choices = [n for n in self.order if isinstance(n.op, Select) and self.per_row(n)]
        self.under = _conditions_of(self.body, self.sums, choices) if self.skips else {}
        self.level: dict[Node, int] = {}
        for node in self.order:
            condition = (self.under[node],) if node in self.under else ()
            deepest = max((self.level[a] for a in (*node.args, *condition)), default=0)
            self.level[node] = deepest + (node in self.sums)
        self.last = max(self.level.values())
        self.costly = {n for n in self.order if _is_costly(n)} if self.last else set()
        results = self.body.output_nodes
        self.whole = [(k, n) for k, n in enumerate(results) if not self.per_row(n)]
        """The results that are arrays of rows, with their numbers."""
        self.text: dict[Node, str] = {}
        self.held: dict[Node, int] = {}
        """Values that wait in the memory of a result, by its number."""
        self.lines: list[str] = []
        self.serial = 0

    def per_row(self, node: Node) -> bool:
        """Whether a value is one number per row, or a scalar."""
        return bool(self.nest.axes) and not same_shape(node.shape, self.full)

    def write(self) -> None:
        """Write all loops into ``lines``."""
        for level in range(self.last + 1):
            self._numbers(level)
            self._loop(level)
        for k, node in enumerate(self.body.output_nodes):
            if self.per_row(node):
                self.lines.append(f"  {self.store(k, self.text[node], True)}")

    # ---- methods that each target defines ---------------------------------------------------------

    @abstractmethod
    def element(self, position: int) -> str:
        """An element of an array of rows."""

    @abstractmethod
    def column(self, position: int) -> str:
        """An element of the one row that all rows share."""

    @abstractmethod
    def number(self, position: int, per_row: bool) -> str:
        """A number per row, or one number for all rows."""

    @abstractmethod
    def result(self, position: int) -> str:
        """An element of a result."""

    def kind(self, position: int) -> str:
        """The C type of an element where it is computed with."""
        return self.c.real

    @abstractmethod
    def over_row(self, loop: RowLoop) -> list[str]:
        """The loop over a row; its totals are declared and have their first values."""

    @abstractmethod
    def store(self, position: int, value: str, per_row: bool) -> str:
        """The statement that writes an element of a result, or its number for the row."""

    # ---- methods that all targets share -----------------------------------------------------------

    def _name(self, prefix: str) -> str:
        self.serial += 1
        return f"{prefix}{self.serial}"

    def _leaf(self, node: Node) -> str | None:
        """The text of a constant, or of an input with one number per row."""
        if isinstance(node.op, Constant):
            value = node.op.value
            return str(value).lower() if isinstance(value, bool) else self.c.literal(value)
        if isinstance(node.op, Local):
            return self.number(node.op.position, bool(node.shape))
        return None

    def _numbers(self, level: int) -> None:
        """Write the values per row that are known after this many loops."""
        for node in self.order:
            if self.level[node] != level or node in self.text or not self.per_row(node):
                continue
            leaf = self._leaf(node)
            if leaf is not None:
                self.text[node] = leaf
            elif node.op.moves is Moved.IN_ORDER:
                self.text[node] = self.text[node.args[0]]
            elif node not in self.sums:
                self.text[node] = self._name("r")
                line = self.c.declare(self.text[node], node, [self.text[a] for a in node.args])
                self.lines.append(f"  {line}")

    def _loop(self, level: int) -> None:
        """Write the loop after which the next level's sums are known, and the results of this level."""
        sums = [n for n in self.sums if self.level[n] == level + 1]
        made = [(k, n) for k, n in self.whole if self.level[n] == level]
        for condition in dict.fromkeys(self.under[n] for n in sums if n in self.under):
            own = [n for n in sums if self.under.get(n) is condition]
            self._loop_of(level, own, [], self.text[condition])
        sums = [n for n in sums if n not in self.under]
        if sums or made:
            self._loop_of(level, sums, made)

    def _loop_of(
        self, level: int, sums: Sequence[Node], made: Sequence[tuple[int, Node]], condition: str = ""
    ) -> None:
        """Write a loop that computes some sums and results, if a condition holds."""
        wanted = [*(a for n in sums for a in self._terms(n)), *(n for _, n in made)]
        order = self._needed(wanted)
        kept = {} if condition else self._kept(level, order)
        given, text = self._elements(order)
        totals = [self._total(node, text) for node in sums]
        stores = [(k, text[n]) for k, n in made] + [(k, text[n]) for n, k in kept.items()]
        lines, near = self.c.taken()
        self.text |= dict(zip(sums, (total.name for total in totals), strict=True))
        overwritten = {k for k, _ in made}
        self.held = {n: k for n, k in self.held.items() if k not in overwritten} | kept
        loop = self.over_row(RowLoop(given, lines, near, totals, stores))
        self.lines += [f"  if ({condition}) {{", *loop, "  }"] if condition else loop

    def _terms(self, node: Node) -> Nodes:
        """The factors under a sum that are arrays of rows."""
        return node.args[:1] if is_row_dot(node, self.full) else node.args

    def _total(self, node: Node, text: dict[Node, str]) -> RunningTotal:
        """The number for a sum, after its declaration."""
        kind = node.op.kind if isinstance(node.op, Extreme) else "+"
        infinite = self.c.target.infinity
        first = {"+": "0", "max": f"-{infinite}", "min": infinite}[kind]
        name = self._name("s")
        self.lines.append(f"  {self.c.real} {name} = {first};")
        factors = [text[a] for a in self._terms(node)]
        if is_row_dot(node, self.full):
            factors.append(self.column(op_of(node.args[1], Local).position))
        return RunningTotal(name, kind, " * ".join(factors))

    def _needed(self, wanted: Iterable[Node], known: Collection[Node] = ()) -> list[Node]:
        """The elements without a text that the wanted ones depend on, in order."""
        needed: set[Node] = set()
        stack = [n for n in wanted]
        while stack:
            node = stack.pop()
            if node in needed or node in self.text or node in known or self.per_row(node):
                continue
            needed.add(node)
            if node not in self.held:
                stack.extend(node.args)
        return [n for n in self.order if n in needed]

    def _elements(self, order: Sequence[Node]) -> tuple[list[str], dict[Node, str]]:
        """Statements that read the elements of a row, and the texts of the values computed from them."""
        text, given = dict(self.text), []
        for node in order:
            source = self._source(node)
            leaf = self._leaf(node) if source is None else None
            if source is not None:
                text[node], kind = self._name("a"), self.c.real
                if isinstance(node.op, Local):
                    kind = self.kind(node.op.position)
                given.append(f"const {kind} {text[node]} = {source};")
            elif isinstance(node.op, Broadcast):
                text[node] = text[node.args[0]]
            elif leaf is not None:
                text[node] = leaf
            else:
                text[node] = self._name("w")
                self.c.add(text[node], node, [text[a] for a in node.args])
        return given, text

    def _source(self, node: Node) -> str | None:
        """The element of an array in which a value stands; None if it is computed."""
        if node in self.held:
            return self.result(self.held[node])
        if isinstance(node.op, Local):
            return self.element(node.op.position)
        if repeats_columns(node, self.full) and isinstance(node.args[0].op, Local):
            return self.column(node.args[0].op.position)
        return None

    def _kept(self, level: int, order: Sequence[Node]) -> dict[Node, int]:
        """The values of a loop that wait for later loops in the memory of results: the costliest ones."""
        free = [k for k, n in self.whole if self.level[n] > level and k not in self.held.values()]
        if not free or not self.costly.intersection(order):
            return {}
        later = [n for _, n in self.whole if self.level[n] > level]
        later += [a for n in self.sums if self.level[n] > level + 1 for a in self._terms(n)]
        kept: dict[Node, int] = {}
        for k in free:
            again = self._needed(later, kept)
            cost = len(self.costly.intersection(again))
            both = [n for n in order if n in again and not isinstance(n.op, Local)]
            costs = [len(self.costly.intersection(self._needed(later, {*kept, n}))) for n in both]
            if not costs or min(costs) == cost:
                break
            kept[min(zip(costs, range(0, -len(both), -1), both, strict=True))[2]] = k
        return kept


def _is_costly(node: Node) -> bool:
    """Whether a node is a function, a root or a quotient."""
    if isinstance(node.op, Pow):
        return not isinstance(constant_value(node.args[1]), int)
    return isinstance(node.op, Apply) or (isinstance(node.op, Mul) and -1 in node.op.powers)



def _conditions_of(body: Graph, sums: Sequence[Node], choices: Sequence[Node]) -> dict[Node, Node]:
    """The conditions under which sums are read: by the first branch of a choice alone."""
    found: dict[Node, Node] = {}
    for choice in choices:
        condition, _, other = choice.args
        read, waiting = set[Node](), [*body.output_nodes]
        while waiting:
            node = waiting.pop()
            if node not in read:
                read.add(node)
                waiting += (condition, other) if node is choice else node.args
        found |= {n: condition for n in sums if n not in read}
    return found
