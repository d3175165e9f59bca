"""Errors about patterns and colorings."""

from __future__ import annotations

from symad.errors import SymadError


class PatternError(SymadError, ValueError):
    """A matrix or graph given as a sparsity pattern cannot serve as one."""


class ColoringError(SymadError, ValueError):
    """A coloring that does not do what its kind promises, or was asked for in unknown words."""
