"""Whether two contraction networks are one but for the names of their bound indices.

A network is given by its factors, (atom, indices, exponent), and the dimensions of its bound indices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from symad.core.dims import Dim

if TYPE_CHECKING:
    import networkx as nx

ROUNDS = 4
"""How far a signature looks around each index."""

Factors = Sequence[tuple[Any, tuple[int, ...], Any]]
Dims = Mapping[int, Dim]
Unordered = Callable[[Hashable], bool]
"""Whether the indices of an atom may be exchanged."""


def signature(factors: Factors, dims: Dims, unordered: Unordered) -> int:
    """The same number for isomorphic networks."""
    heads, colors = refined(factors, dims, unordered)
    return hash((*sorted(heads), *sorted(colors.values())))


def refined(factors: Factors, dims: Dims, unordered: Unordered) -> tuple[list[int], dict[int, int]]:
    """A number for each factor and each bound index, by where they stand (Weisfeiler and Lehman 1968)."""
    colors = {i: hash(("sum", dim)) for i, dim in dims.items()}
    heads = [hash((atom, e)) for atom, _, e in factors]
    loose = [unordered(atom) for atom, _, _ in factors]
    for _ in range(ROUNDS if colors else 1):
        met: dict[int, list[int]] = {i: [] for i in colors}
        for k, (_, at, _) in enumerate(factors):
            places = [colors.get(i, i) for i in at]
            heads[k] = hash((heads[k], *(sorted(places) if loose[k] else places)))
            for slot, i in enumerate(at):
                if i in met:
                    met[i].append(hash((heads[k], 0 if loose[k] else slot)))
        colors = {i: hash((color, *sorted(met[i]))) for i, color in colors.items()}
    return heads, colors


def isomorphic(
    a: tuple[Factors, Dims], b: tuple[Factors, Dims], unordered: Unordered, spend: Callable[[], None]
) -> bool:
    """Whether one is the other with other names of bound indices; ``spend`` is called at each comparison."""
    (_, first), (_, second) = refined(*a, unordered), refined(*b, unordered)
    if sorted(first.values()) != sorted(second.values()):
        return False
    if len(set(first.values())) == len(first):  # then there is one way to rename
        named = {color: i for i, color in second.items()}
        names = {i: named[color] for i, color in first.items()}
        same = all(b[1][names[i]] == dim for i, dim in a[1].items())
        return same and _listed(a[0], names, unordered) == _listed(b[0], {}, unordered)

    def match(x: Mapping[str, object], y: Mapping[str, object]) -> bool:
        spend()
        return bool(x["label"] == y["label"])

    import networkx

    return bool(networkx.is_isomorphic(drawn(*a, unordered), drawn(*b, unordered), node_match=match))


def _listed(factors: Factors, names: Mapping[int, int], unordered: Unordered) -> Counter[Hashable]:
    """The factors with other names of indices, in no order."""
    renamed = ((atom, tuple(names.get(i, i) for i in at), e) for atom, at, e in factors)
    return Counter((atom, tuple(sorted(at)) if unordered(atom) else at, e) for atom, at, e in renamed)


def drawn(factors: Factors, dims: Dims, unordered: Unordered) -> nx.Graph[Hashable]:
    """Factors, their slots and indices as a graph with labels."""
    import networkx

    graph = networkx.Graph()
    for k, (atom, at, e) in enumerate(factors):
        graph.add_node(("factor", k), label=(atom, e))
        for slot, i in enumerate(at):
            graph.add_node(("slot", k, slot), label=-1 if unordered(atom) else slot)
            graph.add_node(("index", i), label=("sum", dims[i]) if i in dims else ("axis", i))
            graph.add_edge(("factor", k), ("slot", k, slot))
            graph.add_edge(("slot", k, slot), ("index", i))
    return graph
