"""Packages that offer a function under the name of the module that holds it, loaded on first use."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import Any


def offer(package: str, names: Iterable[str]) -> None:
    """Make ``package.name`` the function ``name`` of the module ``package.name``.

    Importing a module binds it in its package, which would hide a function of the same name; here
    the package answers with the function, and imports the module when it is first asked.
    """
    made = {name: property(_function(name), _keep) for name in names}
    sys.modules[package].__class__ = type("Package", (ModuleType,), made)


def _function(name: str) -> Any:
    return lambda package: getattr(import_module(f"{package.__name__}.{name}"), name)


def _keep(package: ModuleType, module: Any) -> None:
    """The import of the module binds nothing."""
