"""A function of all data against its values on parts, combined: by graph evaluation alone."""

import itertools

import numpy as np

import symad
from symad.core.dims import bind, dim_symbols, solve_dims
from symad.evaluation.evaluate import as_values
from symad.numbers.values import unchecked
from symad.splitting.plan import combined
from symad.verification.fields.integer_inputs import integer_inputs

PARTS = ((2, 3), (1, 3), (3, 1, 2), (4,))


def sizes_of(graph, values):
    """The number of each dimension of a graph."""
    named = zip(graph.inputs, graph.input_nodes, values, strict=True)
    return solve_dims([(str(s), node.shape, np.shape(v)) for s, node, v in named])


def evaluated(graph, values):
    """The flat outputs at values, without checks."""
    concrete = graph.at(sizes_of(graph, values))
    point = dict(zip(concrete.input_nodes, as_values(list(values), concrete.inputs), strict=True))
    with np.errstate(all="ignore"):
        return [np.asarray(v, float) for v in unchecked(list(concrete.output_nodes), point)]


def drawn(graph, cut, lengths, seed, low=0.2, high=0.9):
    """Values of the inputs for parts of these lengths; indices are integers in their range."""
    rng = np.random.default_rng(seed)
    sizes = {s: 3 for s in graph.dims} | {cut.length: sum(lengths)}
    concrete = graph.at({s: v for s, v in sizes.items() if s in graph.dims})
    ranges = integer_inputs(concrete.output_nodes)
    made = []
    for node in concrete.input_nodes:
        shape = bind(node.shape, {})
        assert not dim_symbols(shape)
        span = ranges.get(node)
        made.append(rng.uniform(low, high, shape) if span is None else rng.integers(*span, shape))
    return made


def cut_in_parts(values, cut, lengths):
    """The values of each part."""
    edges = np.cumsum((0, *lengths))
    return [
        [v if (axis := cut.axis(k)) is None else np.take(v, range(a, b), axis) for k, v in enumerate(values)]
        for a, b in itertools.pairwise(edges)
    ]


def by_parts(plan, values, lengths):
    """The outputs combined from the parts by a plan."""
    parts = [evaluated(plan.local, part) for part in cut_in_parts(values, plan.cut, lengths)]
    made = combined(plan.pieces, parts)[: len(plan.after.input_nodes) - len(plan.needs)]
    after = plan.after.at(sizes_of(plan.graph, values))
    return evaluated(after, [*made, *(values[k] for k in plan.needs)])


def agree(certificate, tolerance=1e-10, low=0.2, high=0.9):
    """Compares a proved splitting with numbers; returns the number of finite values compared."""
    plan, count = certificate.plan, 0
    for seed, lengths in enumerate(PARTS):
        try:
            values = drawn(plan.graph, plan.cut, lengths, seed, low, high)
            whole = evaluated(certificate.graph.ungrouped(), values)
        except (symad.errors.SymadError, np.linalg.LinAlgError):
            continue
        made = by_parts(plan, values, lengths)
        for a, b in zip(whole, made, strict=True):
            assert np.shape(a) == np.shape(b), (np.shape(a), np.shape(b))
            if np.all(np.isfinite(a)):
                scale = max(1e-300, np.max(np.abs(a), initial=0.0))
                assert np.max(np.abs(a - b), initial=0.0) <= tolerance * scale, (lengths, a, b)
                count += 1
    return count


def is_wrong_at_its_witness(certificate):
    """True if the value at the witness is the stated one, and neither sum nor mean of the parts equals it."""
    witness = certificate.witness
    point = dict(witness.point)
    lengths = point.pop("rows of the parts")
    graph = certificate.graph.ungrouped()
    values = [np.asarray(point[str(s)], float) for s in graph.inputs]
    from symad.splitting.plan import cut_of

    cut = cut_of(graph, certificate.over)
    entry = next(k for k, e in enumerate(certificate.entries) if e.witness is witness)
    whole = evaluated(graph, values)[entry]
    parts = [evaluated(graph, p)[entry] for p in cut_in_parts(values, cut, lengths)]
    assert abs(whole[witness.index] - float(witness.left)) <= 1e-9 * (1 + abs(whole[witness.index]))
    shares = np.divide(lengths, sum(lengths))
    same = [np.shape(p) == np.shape(whole) for p in parts]
    tried = [sum(parts), sum(p * s for p, s in zip(parts, shares, strict=True))] if all(same) else []
    if np.isnan(float(witness.right)):  # no rule gives the shape of the value
        return not any(same) and all(
            np.delete(np.shape(p), k).tolist() != np.delete(np.shape(whole), k).tolist()
            or sum(np.shape(q)[k] for q in parts) != np.shape(whole)[k]
            for p in parts
            for k in range(np.ndim(whole))
        )
    return abs(float(witness.left) - float(witness.right)) > 1e-9 * abs(float(witness.left)) and not any(
        np.allclose(whole, t, rtol=1e-9, atol=0) for t in tried
    )
