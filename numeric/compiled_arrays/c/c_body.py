"""The bodies of CPU kernels in C: those of CUDA kernels, but with functions that become vector code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from symad.core.graph import Node
from symad.numeric.compiler.math.vector_math import NEEDS, SINES, definitions
from symad.numeric.fusion.c_expressions import KernelBody, has_c_form, kernel_target
from symad.numeric.targets.c_functions import FORMS, HELPERS
from symad.numeric.targets.target import C
from symad.ops.elementwise.apply import Apply
from symad.sympy_functions.scalar_functions import sigmoid, silu, softplus

HEAD = """#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GNUC__
#define inline inline __attribute__((always_inline))  // a call would end vector code
#endif
"""

NAME = "${name}"
"""The name of a kernel in its text until the module names it, so that equal texts are one kernel."""

REAL = {"float64": "double", "float32": "float"}
LETTER = {"float64": "d", "float32": "f", "bool": "?", "int64": "q"}
"""NumPy's letters for types."""

C_TYPE = {"float64": "double", "float32": "float", "bool": "bool", "int64": "long long"}


NATIVE_FORMS = {**FORMS, sigmoid: "$sigmoid($a)", silu: "$a * $sigmoid($a)", softplus: "$softplus($a)"}
"""A function with a vector form of its own is not written as an expression of others."""

NATIVE = {real: kernel_target(real, NATIVE_FORMS) for real in REAL.values()}


@dataclass
class NativeBody(KernelBody):
    """The text of one body; the functions with a vector form are recorded."""

    vector: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    """The functions of the C library and the vector forms that are called."""
    near: list[str] = field(default_factory=list)
    """The statements with branch-free sines; they set ``far`` if an argument is too large for these."""
    nearby: bool = False
    """Whether a statement of `near` is being written."""

    @property
    def target(self) -> C:
        """The C target, with the vector forms."""
        return NATIVE[self.real]

    def named(self, name: str) -> str:
        """symad's vector form if there is one, else the function as in CUDA kernels."""
        if name == "real" or name in HELPERS:
            return super().named(name)
        self.called.add(name)
        if name not in NEEDS:
            return super().named(name)
        self.vector.add(name)
        return f"symad_noting_{name}" if self.nearby and name in SINES else f"symad_{name}"

    def add(self, name: str, node: Node, args: Sequence[str]) -> None:
        """Adds the statement, and its variant without branches to `near`."""
        super().add(name, node, args)
        if not isinstance(node.op, Apply):
            self.near.append(self.lines[-1])
            return
        self.nearby = True
        self.near.append(self.declare(name, node, args))
        self.nearby = False

    def taken(self) -> tuple[list[str], list[str]]:
        """See `KernelBody.taken`."""
        near, self.near = self.near, []
        return super().taken()[0], near


PLAIN = ("floor", "ceil", "fabs", "sqrt")
"""The C library's functions that compile to one instruction."""


def has_vector_form(node: Node, real: str, sines: bool) -> bool:
    """Whether the C text of an elementwise node becomes vector code; if not, NumPy is as fast.

    ``sines``: whether results may be delayed until all arguments of sines are known to be small enough.
    """
    if not has_c_form(node):
        return False
    body = NativeBody(real)
    body.expression(node, [f"a{k}" for k in range(len(node.args))])
    direct, body.called = body.called, set()
    body.helper_texts()
    branches = body.called if sines else direct | body.called
    return not branches & {*SINES} and all(name in PLAIN or name in NEEDS for name in direct | body.called)


def functions(bodies: list[NativeBody], real: str) -> str:
    """The definitions of the functions that some bodies call."""
    scratch = NativeBody(real, helpers=dict.fromkeys(name for body in bodies for name in body.helpers))
    texts = scratch.helper_texts()
    vector = scratch.vector.union(*[body.vector for body in bodies])
    noting = "".join(
        f"#define symad_noting_{name}(x) (far |= symad_far(x), symad_near_{name}(x))\n"
        for name in SINES
        if name in vector
    )
    return definitions(vector, real) + noting + "".join(f"static inline {text}\n" for text in texts)
