"""The bodies of kernels in C for the CPU: those for CUDA, with functions that become vector code."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from symad.core.graph import Node
from symad.library.scalar_functions import sigmoid, silu, softplus
from symad.numeric.compiled_arrays.math.vector_math import NEEDS, SINES, definitions
from symad.numeric.fusion.c_expressions import HELPERS, Body, c_form, has_c_form

HEAD = """#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GNUC__
#define inline inline __attribute__((always_inline))  // a call would end vector code
#endif
"""

REAL = {"float64": "double", "float32": "float"}
LETTER = {"float64": "d", "float32": "f", "bool": "?", "int64": "q"}
"""NumPy's letters for types."""

C_TYPE = {"float64": "double", "float32": "float", "bool": "bool", "int64": "long long"}


FORMS = {sigmoid: "F(sigmoid)({})", silu: "{0} * F(sigmoid)({0})", softplus: "F(softplus)({})"}
"""What has a vector form of its own."""


@dataclass
class NativeBody(Body):
    """The text of one body; functions that have a vector form are noted."""

    vector: set[str] = field(default_factory=set)

    def form(self, head: Any) -> str:
        """Those of vector forms before those for CUDA."""
        return FORMS[head] if head in FORMS else super().form(head)

    def expand(self, template: str) -> str:
        """F(name) is our vector form where there is one, else the C library's."""

        def named(match: re.Match[str]) -> str:
            name = match[1]
            if name in NEEDS:
                self.vector.add(name)
                return f"symad_{name}"
            return name + ("f" if self.real == "float" else "")

        return re.sub(r"F\((\w+)\)", named, template)

    @property
    def sines(self) -> bool:
        """Whether there are functions that are free of branches for arguments that are not far."""
        return any(f"symad_{name}(" in line for line in self.lines for name in SINES)

    def near(self) -> list[str]:
        """The statements for arguments that are not far; the variable ``far`` tells if some were."""
        pattern = re.compile(rf"symad_({'|'.join(SINES)})\((\w+)\)")
        return [pattern.sub(r"(far |= symad_far(\2), symad_near_\1(\2))", line) for line in self.lines]


PLAIN = ("floor", "ceil", "fabs", "sqrt")
"""The C library's functions that are one instruction."""


def has_vector_form(node: Node, real: str, sines: bool) -> bool:
    """Whether the C text of an elementwise node becomes vector code; if not, NumPy's function is as good.

    Args:
        node: the node.
        real: "double" or "float".
        sines: whether results may wait until it is known that no argument of a sine was far.
    """
    if not has_c_form(node):
        return False
    body = NativeBody(real)
    text = str(c_form(node.op, node, tuple(f"a{k}" for k in range(len(node.args))), body))
    helpers = [body.expand(HELPERS[name]) for name in body.helpers]
    texts = [text, *helpers]
    for name in SINES:
        if any(f"symad_{name}(" in t for t in (helpers if sines else texts)):
            return False
    suffix = "f" if real == "float" else ""
    called = {name.removesuffix(suffix) for t in texts for name in re.findall(r"\b([a-z]\w*)\(", t)}
    return all(name in PLAIN or name.startswith("symad_") or name in ("real", real) for name in called)


def functions(bodies: list[NativeBody], real: str) -> str:
    """The functions that some bodies call."""
    scratch = NativeBody(real)
    names = dict.fromkeys(name for body in bodies for name in body.helpers)
    texts = [scratch.expand(HELPERS[name]) for name in names]
    texts = [t.replace("real ", f"{real} ").replace("(real)", f"({real})") for t in texts]
    vector = definitions(scratch.vector.union(*[body.vector for body in bodies]), real)
    return vector + "".join(f"static inline {text}\n" for text in texts)
