"""Tensor networks: arrays as products of smaller ones, with the axes of each named.

A unit seed is a product of identity matrices. Through many ops, a tangent that starts from it remains a
product, of rows x_bi of the data, an identity δ_jq, and a matrix M_bjk. As an array it has an element for
each combination of the names, while its factors are small. A `NetworkTerm` keeps the factors. Identities need
no factor: an axis name that appears twice says that the value is zero off the diagonal.

    value[axes] = Π factors[names], where equal names mean equal positions, and 0 elsewhere.

Multiplying networks joins names, and summing over a name contracts the factors that have it. Two terms of a
sum become one if they share factors and the sum of the remaining factors stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import sympy

from symad.core.dims import Dim, Shape, as_dim, same_dim, size
from symad.core.graph import Node
from symad.numeric.passes.algebra.contraction_order import (
    Factor,
    Name,
    Names,
    absorbed,
    elements,
    summed,
)
from symad.ops.basic.contraction import contract
from symad.ops.basic.shaping import reshape
from symad.ops.basic.sources import dimension


class Misfit(Exception):
    """Two axes are split into names of incompatible lengths."""


@dataclass(frozen=True)
class NetworkTerm:
    """A product of arrays; an axis with several names runs over their positions in row-major order."""

    factors: tuple[Factor, ...]
    axes: tuple[Names, ...]

    @property
    def names(self) -> Names:
        """The names of all axes in order."""
        return tuple(name for axis in self.axes for name in axis)


def atom(node: Node) -> NetworkTerm:
    """An array as a term with one factor; axes of length 1 have no name."""
    axes = tuple(() if d == 1 else (Name(d),) for d in node.shape)
    names = tuple(name for axis in axes for name in axis)
    return NetworkTerm(((reshape(node, tuple(n.size for n in names)), names),), axes)


def identity(count: Dim) -> NetworkTerm:
    """The identity matrix: no factors, and one name for both axes."""
    name = Name(count)
    return NetworkTerm((), ((name,), (name,)))


# ---- names ---------------------------------------------------------------------------------------


class Joining:
    """A record of the names that were joined with others or split into two."""

    def __init__(self) -> None:
        """Starts without joined or split names."""
        self.parts: dict[Name, Names] = {}

    def resolved(self, names: Names) -> Names:
        """The current names that some names stand for."""
        done: list[Name] = []
        todo = list(reversed(names))
        while todo:
            name = todo.pop()
            if name in self.parts:
                todo.extend(reversed(self.parts[name]))
            else:
                done.append(name)
        return tuple(done)

    def join(self, one: Names, other: Names) -> None:
        """Identify two axes: they have equal positions from now on.

        Raises:
            Misfit: the names of one have no common refinement with those of the other.
        """
        position = 0
        while True:
            a, b = self.resolved(one), self.resolved(other)
            if len(a) <= position or len(b) <= position:
                if len(a) != len(b):
                    raise Misfit
                return
            x, y = a[position], b[position]
            if x is y or same_dim(x.size, y.size):
                if x is not y:
                    self.parts[y] = (x,)
                position += 1
            elif elements((x,)) > elements((y,)):
                self.cut(x, y)
            else:
                self.cut(y, x)

    def cut(self, name: Name, first: Name) -> None:
        """Split a name in two, the first of which has the length of another name."""
        rest = quotient(name.size, first.size)
        if rest is None:
            raise Misfit
        self.parts[name] = (Name(first.size), Name(rest))

    def term(self, term: NetworkTerm) -> NetworkTerm:
        """The term under its current names."""
        return NetworkTerm(tuple(map(self.factor, term.factors)), tuple(map(self.resolved, term.axes)))

    def factor(self, factor: Factor) -> Factor:
        """A factor under its current names; if a name appears twice, its diagonal is taken."""
        node, names = factor
        new = self.resolved(names)
        if new != names:
            node = reshape(node, tuple(n.size for n in new))
        distinct = tuple(dict.fromkeys(new))
        return (node, new) if distinct == new else (contract([new], distinct, node), distinct)


def quotient(whole: Dim, part: Dim) -> Dim | None:
    """The dimension whole/part; None if it is not an integer."""
    if isinstance(whole, int) and isinstance(part, int):
        return whole // part if part and whole % part == 0 else None
    ratio = sympy.cancel(sympy.S.One * whole / part)
    return as_dim(ratio) if sympy.denom(ratio) == 1 else None


def renamed(term: NetworkTerm) -> NetworkTerm:
    """The term with new names, which no other term has."""
    joining = Joining()
    for name in dict.fromkeys((*term.names, *(n for _, names in term.factors for n in names))):
        joining.parts[name] = (Name(name.size),)
    return NetworkTerm(
        tuple((node, joining.resolved(names)) for node, names in term.factors),
        tuple(map(joining.resolved, term.axes)),
    )


def regrouped(term: NetworkTerm, shape: Shape) -> NetworkTerm:
    """The same elements in row-major order under another shape.

    Raises:
        Misfit: the shape would split a name whose length it does not divide.
    """
    joining = Joining()
    axes: list[Names] = []
    for d in shape:
        axis: list[Name] = []
        while not same_dim(size(n.size for n in axis), d):
            used = sum(map(len, axes)) + len(axis)
            left = joining.resolved(term.names)[used:]
            missing = quotient(d, size(n.size for n in axis))
            if not left or missing is None:
                raise Misfit
            if quotient(missing, left[0].size) is None:
                joining.cut(left[0], Name(missing))
                # another use of the same name has to be split as well: start again with the split names
                return regrouped(joining.term(term), shape)
            axis.append(left[0])
        axes.append(tuple(axis))
    if sum(map(len, axes)) != len(term.names):
        raise Misfit
    return NetworkTerm(term.factors, tuple(axes))


# ---- products ------------------------------------------------------------------------------------


def contracted_now(factors: Sequence[Factor], kept: set[Name]) -> list[Factor]:
    """The factors after all possible sums, and with no factor whose names another factor has."""
    return absorbed(summed(factors, kept))


def product(
    terms: Sequence[NetworkTerm],
    labels: Sequence[Sequence[Hashable]],
    output: Sequence[Hashable],
    reduced: Callable[[Sequence[Factor], set[Name]], list[Factor]] = contracted_now,
) -> NetworkTerm:
    """The contraction of networks: axes with one label are identified, labels not in ``output`` are summed.

    ``reduced`` combines the factors, given the names of the result.

    Raises:
        Misfit: axes with one label are split differently.
    """
    operands = [renamed(term) for term in terms]
    joining, place = Joining(), dict[Hashable, Names]()
    for term, part in zip(operands, labels, strict=True):
        for label, axis in zip(part, term.axes, strict=True):
            joining.join(place.setdefault(label, axis), axis)
    everything = {n for axis in place.values() for n in joining.resolved(axis)}
    axes = tuple(joining.resolved(place[label]) for label in output)
    factors = [joining.factor(f) for term in operands for f in term.factors]
    kept = {n for axis in axes for n in axis}
    repeated = everything - kept - {n for _, names in factors for n in names}
    factors += [(dimension(name.size), ()) for name in repeated]
    return NetworkTerm(tuple(reduced(factors, kept)), axes)
