"""Examples of every op on symbolic inputs; tests and tables ask each question of each op on them.

One file for each family. A rule registered by `symad.core.questions.examples` returns nodes;
`EXAMPLES` holds all of them by the class of the op.
"""

from symad.core.questions import EXAMPLES
from symad.op_examples import arrays, elementwise, fused, higher_order, linalg, sparse

__all__ = ["EXAMPLES", "arrays", "elementwise", "fused", "higher_order", "linalg", "sparse"]
