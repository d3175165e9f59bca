"""Examples of every op on symbolic inputs; tests and tables ask each question of each op on them.

One file for each folder of `symad.ops`. A rule registered by `symad.core.questions.examples` returns nodes;
`EXAMPLES` holds all of them by the class of the op.
"""

from symad.core.questions import EXAMPLES
from symad.ops.examples import arrays, elementwise, fused, linalg, loops, sparse

__all__ = ["EXAMPLES", "arrays", "elementwise", "fused", "linalg", "loops", "sparse"]
