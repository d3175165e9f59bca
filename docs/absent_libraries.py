"""Stand-ins for libraries that `symad.torch` and `symad.jax` import, where the site is built without them.

A name with a capital is a class, so that functions can be dispatched on it; any other name is a module.
"""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class Absent(ModuleType):
    """A module whose names exist when they are asked for."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        found = type(name, (), {"__module__": self.__name__}) if name[0].isupper() else Absent(full)
        setattr(self, name, found)
        return found

    def __call__(self, *args, **options):
        """What a decorator gives: the function that it was given; of other calls a stand-in."""
        return args[0] if args and callable(args[0]) else self


class Finder(MetaPathFinder, Loader):
    """Finds the libraries, and all modules in them."""

    def __init__(self, names):
        self.names = frozenset(names)

    def find_spec(self, name, path=None, target=None):
        """The module, if it is of one of the libraries."""
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in self.names else None

    def create_module(self, spec):
        """A stand-in."""
        return Absent(spec.name)

    def exec_module(self, module):
        """Nothing runs."""


def install(names):
    """Let these libraries be imported."""
    sys.meta_path.append(Finder(names))
