"""Certificates as JSON: data only, so that reading one runs nothing of it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from itertools import chain
from typing import Any

from symad.core.claims import KINDS, Derivative, Proof, regrouped
from symad.core.graph import Graph, Node, TupleOf
from symad.core.signatures import Json
from symad.core.variables import held
from symad.errors import SavingError
from symad.ops.basic.sources import Input, symbol_of
from symad.saving.save_load import DAMAGE, dumps, loads
from symad.verification.certificate.blame import Blame
from symad.verification.certificate.certificate import (
    METHODS,
    STATUSES,
    Certificate,
    CertifiedModel,
    Comparison,
    Entry,
    Loss,
)
from symad.verification.certificate.witness import Witness

FORMAT, VERSION = "symad certificate", 1


def write(certificate: Certificate) -> str:
    """The JSON text of a certificate, with the graphs it compares.

    Raises:
        SavingError: a graph holds a function or input that cannot be saved.
    """
    document = {
        "format": FORMAT,
        "version": VERSION,
        "title": certificate.title,
        "status": certificate.status,
        "bound": certificate.bound,
        "seed": certificate.seed,
        "primes": [str(p) for p in certificate.primes],
        "versions": dict(certificate.versions),
        "seconds": certificate.seconds,
        "steps": certificate.steps,
        "notes": list(certificate.notes),
        "losses": [asdict(loss) for loss in certificate.losses],
        "entries": [_write_entry(e) for e in certificate.entries],
        "comparisons": list(map(_write_comparison, certificate.comparisons)),
        "proof_steps": certificate.proof_steps,
        **_write_model(certificate.model),
    }
    text = json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False)
    proofs = ",\n".join(map(_write_proof, certificate.proofs))
    return text[:-2] + f',\n "proofs": [\n{proofs}\n ]\n}}\n'  # the closing brace comes last


def _write_model(model: CertifiedModel | None) -> dict[str, Json]:
    """The graph of a model, and which inputs it is differentiated by; nothing if it cannot be saved."""
    if model is None:
        return {}
    try:
        graph = json.loads(dumps(model.graph))
    except SavingError:  # a function of the user; only `to_coq` would read it
        return {}
    symbols = [symbol_of(node) for node in model.graph.input_nodes]
    return {"model": {"graph": graph, "wrt": [symbols.index(w) for w in model.wrt]}}


def _write_proof(proof: Proof) -> str:
    """A proof with a line for each of its steps."""
    steps = ",\n    ".join(json.dumps(step, ensure_ascii=False) for step in proof.steps)
    goals = json.dumps(proof.goals)
    head = f'"claims": {json.dumps(proof.claims)}, "way": {json.dumps(proof.way)}, "digest": {proof.digest}'
    return f'  {{{head},\n   "goals": {goals},\n   "steps": [\n    {steps}\n   ]}}'


def _write_entry(entry: Entry) -> dict[str, float | str]:
    saved = {k: v for k, v in asdict(entry).items() if v not in (None, "", ())}
    if "measured" in saved:
        saved["measured"] = {k: _finite(v) for k, v in saved["measured"].items()}
    return saved


def _finite(value: Any) -> Any:
    """JSON has no infinity: it is written as text."""
    return str(value) if isinstance(value, float) and value in (float("inf"), float("-inf")) else value


def _write_comparison(comparison: Comparison) -> dict[str, Json]:
    """A claim as one graph, of all its nodes.

    Raises:
        SavingError: something in it cannot be saved, such as a function that is not registered.
    """
    left, right, of = comparison.left, comparison.right, comparison.function or comparison.left
    _, _, *derivative, domain = comparison.groups
    outputs = tuple(chain(*comparison.groups))
    inputs = tuple(dict.fromkeys(chain(left.input_nodes, right.input_nodes, *derivative[1:])))
    whole = _named_as(of, inputs, outputs)
    saved: dict[str, Json] = {}
    if comparison.derivative is not None:
        saved["derivative"] = [comparison.derivative.kind, *map(len, derivative)]
    if domain:
        saved["domain"] = True
    return {
        "title": comparison.title,
        "names": list(comparison.names),
        "assumes": list(comparison.assumes),
        "left_name": comparison.left_name,
        "right_name": comparison.right_name,
        **saved,
        "graph": json.loads(dumps(whole)),
    }


def _named_as(like: Graph, inputs: tuple[Node, ...], outputs: tuple[Node, ...]) -> Graph:
    """A graph with the name of another one, and with the names of its values."""
    none, names = TupleOf((None,) * len(outputs)), held(like.variables, outputs)
    return Graph(inputs, outputs, none, like.name, "", None, (), None, names)


# ---- reading ------------------------------------------------------------------------------------


def read(text: str) -> Certificate:
    """A certificate from its JSON text. Nothing in it is executed.

    Raises:
        SavingError: it is no certificate, has another version, or is damaged.
    """
    try:
        document = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise SavingError(f"this is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise SavingError(f'this is no certificate: it does not say "format": "{FORMAT}"')
    if document.get("version") != VERSION:
        raise SavingError(
            f"the certificate has version {document.get('version')!r}; this symad reads version {VERSION}"
        )
    try:
        return _read_document(document)
    except DAMAGE as error:
        raise SavingError(f"the certificate is damaged: {type(error).__name__}: {error}") from None
    except RecursionError:
        raise SavingError("the certificate is nested too deeply") from None


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, or the models of a file, by names that differ: of two equal ones one is not seen.

    Raises:
        ValueError: gives a name that occurs twice.
    """
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {max(names, key=names.count)!r} occurs twice")
    return made


def _read_document(document: dict[str, Any]) -> Certificate:
    match document:
        case {
            "title": str(title),
            "entries": list(entries),
            "comparisons": list(comparisons),
            "seed": int(seed),
            "primes": list(primes),
            "versions": dict(versions),
            "seconds": float() | int() as seconds,
        } if math.isfinite(seconds):
            return Certificate(
                title,
                tuple(map(_read_entry, entries)),
                tuple(map(_read_comparison, comparisons)),
                seed,
                tuple(map(_read_prime, primes)),
                {str(k): str(v) for k, v in versions.items()},
                float(seconds),
                int(document.get("steps", 0)),
                _texts(document.get("notes", [])),
                tuple(map(_read_loss, document.get("losses", []))),
                tuple(map(_read_proof, document.get("proofs", []))),
                int(document.get("proof_steps", 0)),
                model=_read_model(document.get("model")),
            )
    raise SavingError("the certificate lacks a part, or a part is of the wrong kind")


def _read_model(saved: Json) -> CertifiedModel | None:
    """The model as its graph; an expression or a Python function is not kept."""
    match saved:
        case None:
            return None
        case {"graph": dict(saved_graph), "wrt": list(places)}:
            graph = loads(json.dumps(saved_graph))
            inputs = graph.input_nodes
            if not all(type(k) is int and 0 <= k < len(inputs) for k in places):
                raise SavingError("the model of the certificate names inputs that it has not")
            wrt = tuple(symbol_of(inputs[k]) for k in places)
            return CertifiedModel(graph, graph, wrt)
    raise SavingError("the model of the certificate lacks its graph or its inputs")


def _read_proof(saved: Any) -> Proof:
    """A proof; its steps are looked at by the checker."""
    match saved:
        case {"claims": list(claims), "goals": list(goals), "steps": list(steps), "digest": int(digest)}:
            triples = tuple((int(k), int(o), int(e)) for k, o, e in goals)
            way = str(saved.get("way", "elements"))
            return Proof(tuple(map(int, claims)), triples, tuple(steps), digest, way)
    raise SavingError("a proof lacks its claims, goals or steps")


def _read_prime(saved: Json) -> int:
    if not isinstance(saved, str) or not saved.isdigit() or len(saved) > 4000:
        raise SavingError(f"{saved!r} is no prime")
    return int(saved)


def _read_entry(saved: Any) -> Entry:
    match saved:
        case {
            "name": str(name),
            "status": str(status),
            "claim": str(claim),
            "bound": float() | int() as bound,
        }:
            if status not in STATUSES or not 0 <= bound <= 1:
                raise SavingError(f"an entry has status {status!r} and bound {bound!r}")
            return Entry(
                name,
                status,
                claim,
                float(bound),
                _texts(saved.get("assumes", [])),
                _read_witness(saved.get("witness")),
                _read_blame(saved.get("blame")),
                str(saved.get("reason", "")),
                _read_figures(saved.get("measured")),
                str(saved.get("index", "")),
                saved.get("checked") is True,
            )
    raise SavingError("an entry of the certificate lacks its name, status, claim or bound")


FIGURES = ("points", "relative error", "ulps", "would have seen")
"""What an entry that was measured says."""


def _read_figures(saved: Json) -> dict[str, float] | None:
    """Numbers; infinities are texts."""
    if saved is None:
        return None
    if not isinstance(saved, dict) or not set(FIGURES) <= set(saved):
        raise SavingError(f"the figures of an entry are not {', '.join(FIGURES)}")
    figures = {str(k): v if type(v) is int else float(v) for k, v in saved.items()}
    if any(math.isnan(v) for v in figures.values()):
        raise SavingError("a figure of an entry is no number")
    return figures


def _texts(saved: Json) -> tuple[str, ...]:
    if not isinstance(saved, list) or not all(isinstance(t, str) for t in saved):
        raise SavingError(f"{saved!r} is no list of texts")
    return tuple(saved)


def _read_witness(saved: Json) -> Witness | None:
    match saved:
        case None:
            return None
        case {"point": dict(point), "left": str(left), "right": str(right), **rest}:
            index: Any = rest.get("index", [])
            return Witness(point, left, right, tuple(int(i) for i in index))
    raise SavingError("a witness lacks its point or its values")


def _read_loss(saved: Json) -> Loss:
    match saved:
        case {"word": str(word), "name": str(name), "kind": str(kind), "point": dict(point), **rest}:
            index: Any = rest.get("index", [])
            digits: Any = rest.get("digits", 0)
            expected, found = str(rest.get("expected", "")), str(rest.get("found", ""))
            return Loss(word, name, kind, point, expected, found, tuple(int(i) for i in index), int(digits))
    raise SavingError("a loss of digits lacks its word, output or point")


def _read_blame(saved: Mapping[str, str] | None) -> Blame | None:
    match saved:
        case None:
            return None
        case {"mistake": str(mistake), "expected": str(expected), "found": str(found)}:
            return Blame(mistake, expected, found)
    raise SavingError("the account of a mistake lacks a part")


def _read_comparison(saved: Any) -> Comparison:
    match saved:
        case {
            "title": str(title),
            "names": list(names),
            "assumes": list(assumes),
            "left_name": str(left_name),
            "right_name": str(right_name),
            "graph": dict(graph),
        }:
            pass
        case _:
            raise SavingError("a comparison of the certificate lacks a part")
    whole = loads(json.dumps(graph))
    kind, counts = _read_kind(saved.get("derivative"))
    count, claimed = len(names), int(saved.get("domain") is True)
    if not count or 2 * count + sum(counts) + claimed != len(whole.output_nodes):
        raise SavingError(f"{title}: {len(whole.output_nodes)} outputs for {count} names")
    lengths = map(range, (count, count, *counts, claimed))
    first, second, function, *along, domain = regrouped(whole.output_nodes, lengths)
    if not all(isinstance(node.op, Input) for node in along[0]):
        raise SavingError("a claim is about a derivative by something that is no input")
    if any(node.shape for node in domain):
        raise SavingError("the domain of a claim is damaged")
    left, right = (whole.with_outputs(p, TupleOf((None,) * count)) for p in (first, second))
    of = None
    if kind:
        inputs = tuple(n for n in whole.input_nodes if n not in (*along[1], *along[2]))
        of = _named_as(whole, inputs, function)
    return Comparison(
        title, left, _texts(names), _texts(assumes), Derivative(kind, function, *along) if kind else None,
        domain[0] if domain else None, of, right=right, left_name=left_name, right_name=right_name,
    )  # fmt: skip


def _read_kind(saved: Json) -> tuple[str, list[int]]:
    """The kind of a derivative, and how many nodes each of its groups has; "" for none."""
    match saved:
        case None:
            return "", [0, 0, 0, 0]
        case [str(kind), *counts] if kind in KINDS:
            lengths = [n for n in counts if type(n) is int and n >= 0]
            if len(lengths) == len(counts) == 4:
                return kind, lengths
    raise SavingError("the derivative that a claim is about is damaged")


METHODS.update(write=write, read=read, write_comparison=_write_comparison, read_comparison=_read_comparison)
