"""The stages of ``symad tour``, one file for each topic; `symad.cli.tour.stage` explains how to add one.

`basics` is the start: the chain rule with every step. `data`, `sequences`, `language`, `architectures` and
`generative` run the models; `engine`, `sparse`, `compiled` and `gpu` what computes them;
`verification` certificates.
"""

from __future__ import annotations

import importlib
import pkgutil

from symad.cli.tour.stage import STAGES, Stage


def all_stages() -> dict[str, Stage]:
    """The stages of all files of this folder, with files in the order of their names."""
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}")
    return STAGES
