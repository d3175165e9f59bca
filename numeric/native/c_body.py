"""The bodies of kernels in C for the CPU: those for CUDA, with functions that become vector code."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from symad.numeric.fusion.c_text import HELPERS, Body
from symad.numeric.native.vector_math import available, definitions

HEAD = """#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
"""

REAL = {"float64": "double", "float32": "float"}
LETTER = {"float64": "d", "float32": "f", "bool": "?", "int64": "q"}
"""NumPy's letters for types."""

C_TYPE = {"float64": "double", "float32": "float", "bool": "bool", "int64": "long long"}


@dataclass
class NativeBody(Body):
    """The text of one body; functions that have a vector form are noted."""

    vector: set[str] = field(default_factory=set)

    def expand(self, template: str) -> str:
        """F(name) is our vector form where there is one, else the C library's."""

        def named(match: re.Match[str]) -> str:
            name = match[1]
            if available(name, self.real):
                self.vector.add(name)
                return f"symad_{name}"
            return name + ("f" if self.real == "float" else "")

        return re.sub(r"F\((\w+)\)", named, template)


def functions(bodies: list[NativeBody], real: str) -> str:
    """The functions that some bodies call."""
    scratch = NativeBody(real)
    names = dict.fromkeys(name for body in bodies for name in body.helpers)
    texts = [scratch.expand(HELPERS[name]) for name in names]
    texts = [t.replace("real ", f"{real} ").replace("(real)", f"({real})") for t in texts]
    vector = definitions(scratch.vector.union(*[body.vector for body in bodies]), real)
    return vector + "".join(f"static inline {text}\n" for text in texts)
