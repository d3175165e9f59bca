"""Errors about patterns and colorings."""

from __future__ import annotations

from symad.errors import SymadError


class PatternError(SymadError, ValueError):
    """A matrix or graph given as a sparsity pattern is not one."""


class ColoringError(SymadError, ValueError):
    """A coloring violates the condition of its kind, or was requested by an unknown name."""
