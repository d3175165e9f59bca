"""Examples of every op on symbolic inputs; tests and tables ask each question of each op on them.

One file for each family. `EXAMPLES` holds functions that return nodes, by the class of the op; a longer one
is registered by `symad.core.questions.examples`.
"""

from symad.core.questions import EXAMPLES
from symad.op_examples import arrays, elementwise, fused, higher_order, linalg

__all__ = ["EXAMPLES", "arrays", "elementwise", "fused", "higher_order", "linalg"]
