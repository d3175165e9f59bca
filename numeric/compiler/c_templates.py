"""Templates of C: text in which ``$name`` stands for a function, a type or a constant of the target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from string import Template


@dataclass(frozen=True)
class _TemplateNames(Mapping[str, str]):
    """The replacements of a template's names; they are looked up, never listed."""

    named: Callable[[str], str]

    def __getitem__(self, name: str) -> str:
        return self.named(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def filled(template: str, named: Callable[[str], str]) -> str:
    """A template with its names replaced."""
    return Template(template).substitute(_TemplateNames(named))
