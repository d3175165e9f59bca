"""Parts of sparse matrices that are computed where the matrix reads them, while a module is printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from symad.core.graph import Node
from symad.numeric.fusion.chains import Fused
from symad.numeric.numpy_arrays.elementwise_statements import RULES
from symad.numeric.numpy_arrays.ops.sparse import direct_place, values_array
from symad.numeric.numpy_arrays.owners import owner
from symad.numeric.numpy_arrays.sparse_gather_plan import SideBySide, views_only
from symad.numeric.numpy_arrays.texts import Name
from symad.numeric.program_passes.memory import is_fresh
from symad.ops.sparse.csr import CompressedRows

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.in_place_printer import InPlacePrinter

Fits = Callable[[Node], bool]


@dataclass
class Parts:
    """Where parts go. Their nodes are among the printer's ``boxed`` until they have a place."""

    gathers: dict[Node, SideBySide] = field(default_factory=dict)
    """Sparse matrices whose parts are computed where they go."""
    placed_as: dict[Node, Node] = field(default_factory=dict)
    """The part in whose place a node is computed: itself, or what is made of it step by step."""
    places: dict[Node, Name] = field(default_factory=dict)
    """The names of parts, and of the entries of matrices, once they have one."""
    names: dict[str, Node] = field(default_factory=dict)
    """The matrices that parts side by side belong to, by the names of the parts."""
    looked_through: set[Node] = field(default_factory=set)
    """Views of parts that have no statement."""

    def note(self, order: Sequence[Node], outputs: Sequence[Node], printer: InPlacePrinter) -> None:
        """Note the matrices whose parts can be computed where they go, and these parts."""
        kept = {owner(node) for node in outputs}

        def fits(node: Node) -> bool:
            written = type(node.op) in RULES or isinstance(node.op, Fused)
            taken = any(node in nodes for nodes in (printer.text, printer.slots, printer.boxed))
            return written and bool(node.shape) and is_fresh(node) and not taken and owner(node) not in kept

        position = {node: k for k, node in enumerate(order)}
        for node in [n for n in order if isinstance(n.op, CompressedRows) and n not in printer.text]:
            found = printer.gathering(node, fits)
            if found is None:
                continue
            self.gathers[node] = found
            printer.boxed |= dict.fromkeys(found.direct, node)
            for part in found.starts:
                if fits(part):
                    self._put(part, node, fits, printer)
            for view in sorted({*views_only(node, found)}, key=position.__getitem__, reverse=True):
                if all(u is node or u in self.looked_through for u in printer.users[view]):
                    self.looked_through.add(view)

    def _put(self, part: Node, whole: Node, fits: Fits, printer: InPlacePrinter) -> None:
        """Let a part be computed where it goes, and before it what only it is made of, step by step."""
        at: Node | None = part
        while at is not None:
            printer.boxed[at] = whole
            self.placed_as[at] = part
            args = at.args if type(at.op) in RULES else ()
            near = (a for a in args if a.shape == part.shape and printer.users[a] == [at] and fits(a))
            at = next(near, None)

    def place(self, node: Node, whole: Node, printer: Any) -> tuple[list[str], Name]:
        """The name of a part, and the statements that make its place if it has none yet."""
        found = self.gathers[whole]
        if node in found.direct:
            return direct_place(node, whole, found, printer)
        part = self.placed_as[node]
        if part in self.places:
            return [], self.places[part]
        values, lines = values_array(found, printer.buffers.get(whole), printer)
        printer.buffers[whole] = values
        name = self.places[part] = printer.value_name()
        self.names[name] = whole
        return [*lines, f"{name} = {found.place(part, values, printer)}"], name
