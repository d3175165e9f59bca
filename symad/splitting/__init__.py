"""Splitting data: which functions are sums, means or concatenations of their values on parts.

Start with `certificate`: `splits` proves or refutes it. `states` says what can be known of a node, `rules`
and `moving_rules` have the answer of each op, `plan` makes the graphs of the parts and joins their
values in floating point.
"""

from symad.splitting.certificate import Splitting, splits

__all__ = ["Splitting", "splits"]
