"""A region of rows as loops over a row, one for each level of sums.

Loop p computes the sums whose terms depend on the sums of earlier loops, and writes the results that depend
on no later sum; a last loop writes the other results. Elementwise values are recomputed in every loop that
needs them, from arrays that stay in the cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from symad.core.dims import Shape
from symad.core.graph import Graph, Node, op_of
from symad.core.questions import Nodes
from symad.higher_order.scan import Local
from symad.numeric.fusion.c_expressions import Body
from symad.numeric.fusion.rows import is_row_dot, is_row_sum, repeats_columns, repeats_rows
from symad.ops.basic.shaping import Broadcast, Reshape
from symad.ops.basic.sources import Constant


class RowText(ABC):
    """The text of one region; a target defines how arrays are read and how a loop over a row is written."""

    def __init__(self, body: Graph, full: Shape, c: Body) -> None:
        """Find the order of the nodes and the level of each."""
        self.body, self.full = body, full
        self.c = c
        self.order = body.nodes
        self.level: dict[Node, int] = {}
        for node in self.order:
            deepest = max((self.level[a] for a in node.args), default=0)
            self.level[node] = deepest + self._is_sum(node)
        self.text: dict[Node, str] = {}
        self.lines: list[str] = []
        self.serial = 0

    def _is_sum(self, node: Node) -> bool:
        return is_row_sum(node, self.full) or is_row_dot(node, self.full)

    def per_row(self, node: Node) -> bool:
        """Whether a value is one number per row, or a scalar."""
        return len(node.shape) < len(self.full) or (node.shape[-1] == 1 != self.full[-1])

    def write(self) -> None:
        """Write all loops into ``lines``."""
        self._rows(0)
        for level in range(max(self.level.values())):
            self._sums(level)
            self._rows(level + 1)
        self._write()

    # ---- methods that each target defines ---------------------------------------------------------

    @abstractmethod
    def element(self, position: int) -> str:
        """An element of an array of rows."""

    def column(self, position: int) -> str:
        """An element of the one row that all rows share."""
        return f"x{position}[j]"

    @abstractmethod
    def number(self, position: int, per_row: bool) -> str:
        """A number per row, or one number for all rows."""

    @abstractmethod
    def over_row(self, lines: Sequence[str], sums: Sequence[str]) -> list[str]:
        """The loop over a row; ``sums`` are the names of the sums accumulated in it."""

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

    def _rows(self, level: int) -> None:
        """Write the values per row that are known after this many loops."""
        for node in self.order:
            if self.level[node] != level or node in self.text or not self.per_row(node):
                continue
            leaf = self._leaf(node)
            if leaf is not None:
                self.text[node] = leaf
            elif isinstance(node.op, (Reshape, Broadcast)):
                self.text[node] = self.text[node.args[0]]
            elif not self._is_sum(node):
                self.text[node] = self._name("r")
                self.lines.append(f"  {self._statement(node, self.text)}")

    def _statement(self, node: Node, text: dict[Node, str]) -> str:
        return self.c.declare(text[node], node, [text[a] for a in node.args])

    def _loop(self, wanted: Iterable[Node]) -> tuple[list[str], dict[Node, str]]:
        """Statements for the elements of a row, and the texts of the values they compute."""
        text, lines = dict(self.text), []
        for node in self._needed(wanted):
            if isinstance(node.op, Local):
                text[node] = self._name("a")
                lines.append(f"const {self.c.real} {text[node]} = {self.element(node.op.position)};")
            elif repeats_columns(node, self.full) and isinstance(node.args[0].op, Local):
                text[node] = self._name("a")
                source = self.column(node.args[0].op.position)
                lines.append(f"const {self.c.real} {text[node]} = {source};")
            elif repeats_rows(node, self.full) or isinstance(node.op, Broadcast):
                text[node] = text[node.args[0]]
            else:
                leaf = self._leaf(node)
                text[node] = leaf if leaf is not None else self._name("w")
                if leaf is None:
                    lines.append(self._statement(node, text))
        return lines, text

    def _needed(self, wanted: Iterable[Node]) -> list[Node]:
        """The nodes without a text on which the wanted ones depend, in order."""
        needed, stack = set(), list(wanted)
        while stack:
            node = stack.pop()
            if node not in needed and node not in self.text:
                needed.add(node)
                stack.extend(node.args)
        columns = {n.args[0] for n in needed if repeats_columns(n, self.full)}
        return [n for n in self.order if n in needed and n not in columns]

    def _sums(self, level: int) -> None:
        """Write the loop for the sums whose terms are known at a level."""
        sums = [n for n in self.order if self._is_sum(n) and self.level[n] == level + 1]
        known = [(k, n) for k, n in self._whole() if self.level[n] == level]
        lines, text = self._loop([*(a for n in sums for a in self._terms(n)), *(n for _, n in known)])
        for node in sums:
            self.text[node] = self._name("s")
            self.lines.append(f"  {self.c.real} {self.text[node]} = 0;")
            factors = [text[a] for a in self._terms(node)]
            if is_row_dot(node, self.full):
                factors.append(self.column(op_of(node.args[1], Local).position))
            lines.append(f"{self.text[node]} += {' * '.join(factors)};")
        lines += [self.store(k, text[n], False) for k, n in known]
        self.lines += self.over_row(lines, [self.text[n] for n in sums])

    def _terms(self, node: Node) -> Nodes:
        """The factors under a sum that are arrays of rows."""
        return node.args[:1] if is_row_dot(node, self.full) else node.args

    def _whole(self) -> list[tuple[int, Node]]:
        """The results that are arrays of rows."""
        return [(k, n) for k, n in enumerate(self.body.output_nodes) if not self.per_row(n)]

    def _write(self) -> None:
        """Write the last loop, for results that depend on all sums, and the numbers per row by one lane."""
        last = max(self.level.values())
        whole = [(k, n) for k, n in self._whole() if self.level[n] == last]
        if whole:
            lines, text = self._loop(n for _, n in whole)
            self.lines += self.over_row([*lines, *(self.store(k, text[n], False) for k, n in whole)], [])
        for k, node in enumerate(self.body.output_nodes):
            if self.per_row(node):
                self.lines.append(f"  {self.store(k, self.text[node], True)}")
