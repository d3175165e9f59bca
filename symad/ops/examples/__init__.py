"""Examples of every op on symbolic inputs; tests and tables ask each question of each op on them."""

from symad.core.questions import EXAMPLES
from symad.ops.examples import arrays, elementwise, fused, linalg, loops, sparse

__all__ = ["EXAMPLES", "arrays", "elementwise", "fused", "linalg", "loops", "sparse"]
