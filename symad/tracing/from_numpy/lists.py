"""NumPy's functions of one array on lists of traced values: ``np.max([x, y])``, ``np.linalg.det([u, v])``.

A list takes part in no protocol of NumPy: it becomes an array of objects, whose elements are compared and
summed one by one, or refused. While a function is traced, such a list is converted to one traced array first.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, wraps
from types import ModuleType

import numpy as np

from symad.core.arrays import ArrayLike
from symad.tracing.elements.filled import holds_traced, unfilled
from symad.tracing.proxies.array_protocol import FUNCTIONS, REPLACED, Function
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.sessions import is_tracing
from symad.tracing.proxies.wrapped import as_node

NAMES = {
    np: (
        *("sum", "prod", "mean", "average", "var", "std", "max", "amax", "min", "amin", "ptp", "all", "any"),
        *("cumsum", "cumprod", "diff", "argmax", "argmin", "argsort", "sort", "median", "percentile"),
        *("quantile", "clip", "round", "tril", "triu", "cov", "corrcoef"),
        *("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"),
    ),
    np.linalg: ("inv", "det", "slogdet", "eigh", "eigvalsh", "norm", "cond", "svdvals"),
}
"""The functions whose first argument is one array, by module."""


@cache
def replacements() -> tuple[tuple[ModuleType, str, Function], ...]:
    """For each function its module, its name, and its form for lists, as `making.REPLACED`."""
    return tuple(_replacements())


def _replacements() -> Iterator[tuple[ModuleType, str, Function]]:
    for module, names in NAMES.items():
        for name in names:
            original = getattr(module, name, None)
            if original in FUNCTIONS:
                made = _of_lists(original)
                REPLACED[made] = original
                yield module, name, made


def _of_lists(original: Function) -> Function:
    @wraps(original)
    def call(*args: ArrayLike, **options: ArrayLike) -> object:
        if args and isinstance(args[0], (list, tuple)) and is_tracing() and holds_traced(args[0]):
            args = (Proxy(as_node(unfilled(args[0]))), *args[1:])
        return original(*args, **options)

    return call
