"""The ops, one family in each file, with all their mathematical answers.

The folders: `elementwise`, `arrays` (contraction, reduction, shape), `linalg`, `loops`, `sparse`, and
`fused` for ops with a larger formula as their definition. `symad.core.questions` declares the questions.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module


def load_all() -> None:
    """Import every family, so that all ops and their answers are registered."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        import_module(module.name)
