"""Elementwise nodes as C statements: the bodies of generated kernels.

Every node becomes one ``const`` variable, by the rules of `symad.numeric.targets.scalars`. All arithmetic is
in one real type; a float body calls the float functions and writes float literals, so nothing is
promoted to double. Bodies avoid the names that CuPy reserves: ``n``, ``i``, and leading underscores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy

from symad.core.arrays import Number
from symad.core.graph import Node, topological
from symad.numbers.number_domains import as_float
from symad.numeric.compiler.c_templates import filled
from symad.numeric.program.expressions import Compute, Read, Value
from symad.numeric.targets.c_functions import FORMS, HELPERS, MATH_H, OWN, OWN_MODULE
from symad.numeric.targets.scalars import number, write
from symad.numeric.targets.target import C, Level, LibraryFunction, Text
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import Constant
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Condition, Logic, Select

FUNCTIONS = {
    **{head: LibraryFunction("", name) for head, name in MATH_H.items()},
    **{head: LibraryFunction(OWN_MODULE, name) for head, name in OWN.items()},
}


def kernel_target(real: str, forms: Mapping[sympy.FunctionClass, str] = FORMS) -> C:
    """The C target for one real type, "double" or "float"."""
    f = "f" if real == "float" else ""
    return C(f"{real} kernels", FUNCTIONS, f"(1.0{f} / 0.0{f})", f"(0.0{f} / 0.0{f})", True, forms, f)


TARGETS = {real: kernel_target(real) for real in ("double", "float")}


def has_c_form(node: Node) -> bool:
    """Whether a node can be written in a generated kernel body."""
    if isinstance(node.op, Apply):
        return node.op.head in FUNCTIONS or node.op.head in FORMS
    return isinstance(node.op, (Add, Mul, Pow, Compare, Logic, Select))


NOWHERE = Read(Value("", ()))
"""A placeholder for an argument whose text is known."""


@dataclass
class KernelBody:
    """The C text of one kernel body while it is built; it writes expressions as a `Writer` does."""

    real: str
    text: dict[Node, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    helpers: dict[str, None] = field(default_factory=dict)

    @property
    def target(self) -> C:
        """The target that expressions are written for."""
        return TARGETS[self.real]

    def literal(self, value: Number) -> str:
        """A number as C text of the real type."""
        return number(as_float(value), self.target).inside(Level.ATOM)

    def named(self, name: str) -> str:
        """The text for a name in a template: the type, a helper, or the function of this precision."""
        if name == "real":
            return self.real
        return self.helper(name) if name in HELPERS else name + self.target.suffix

    def expand(self, template: str) -> str:
        """A template of C as text."""
        return filled(template, self.named)

    def filled(self, template: str, argument: str) -> str:
        """A template, filled with an argument."""
        return filled(template, lambda name: argument if name == "a" else self.named(name))

    def function(self, function: LibraryFunction) -> str:
        """The name of a function of the C library, or of one of symad's."""
        return self.helper(function.name) if function.module else self.named(function.name)

    def helper(self, name: str) -> str:
        """The name of one of `HELPERS`, whose use is recorded."""
        self.helpers[name] = None
        return f"symad_{name}"

    def expression(self, node: Node, args: Sequence[str]) -> str:
        """The C expression of an elementwise node; the arguments are names or literals."""
        return self.written(node, self.target, [Text(a) for a in args])

    def written(self, node: Node, target: C, args: Sequence[Text]) -> str:
        """The C expression of a node in a target."""
        found = [Compute(a.op, (), ()) if isinstance(a.op, Constant) else NOWHERE for a in node.args]
        writer: Any = self  # it has the part of a `Writer` that the rules for C use
        made: Text = write(node.op, target, Compute(node.op, tuple(found), ()), tuple(args), writer)
        return made.text

    def type_of(self, node: Node) -> str:
        """The C type of a node's value."""
        return "bool" if isinstance(node.op, Condition) else self.real

    def declare(self, name: str, node: Node, args: Sequence[str]) -> str:
        """The statement that computes a node."""
        return f"const {self.type_of(node)} {name} = {self.expression(node, args)};"

    def add(self, name: str, node: Node, args: Sequence[str]) -> None:
        """Add that statement to the body."""
        self.lines.append(self.declare(name, node, args))

    def taken(self) -> tuple[list[str], list[str]]:
        """The statements since the last call, and their variants without branches, if there are any."""
        lines, self.lines = self.lines, []
        return lines, lines

    def helper_texts(self) -> list[str]:
        """The helper functions that the body calls, and those that they call."""
        texts: dict[str, str] = {}
        while waiting := [name for name in self.helpers if name not in texts]:
            texts |= {name: self.expand(HELPERS[name]) for name in waiting}
        return list(texts.values())

    def preamble(self) -> str:
        """The text of the helper functions, for a device."""
        return "\n".join(f"static __device__ {text}" for text in self.helper_texts())


def statements(outputs: Sequence[Node], names: Mapping[Node, str], body: KernelBody) -> list[str]:
    """Add the statements that compute some nodes to ``body``, and return the C text of each node.

    ``names`` gives the text of the leaves. A broadcast in a body repeats a scalar, so it is the identity.
    """
    body.text.update(names)
    for node in topological(outputs):
        if node in body.text:
            continue
        if isinstance(node.op, Constant):
            value = node.op.value
            flag = isinstance(value, bool)
            body.text[node] = str(value).lower() if flag else body.literal(value)
        elif isinstance(node.op, Broadcast):
            body.text[node] = body.text[node.args[0]]
        else:
            name = f"w{len(body.lines)}"
            body.add(name, node, [body.text[a] for a in node.args])
            body.text[node] = name
    return [body.text[o] for o in outputs]
