"""Certificates: what was claimed, at which level it is known, and all that is needed to check it again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sympy

from symad.core.claims import Derivative, Proof
from symad.core.contents import nodes_at_any_depth
from symad.core.graph import Graph, Node, TupleOf
from symad.core.signatures import Traceable
from symad.errors import SymadError
from symad.facts.functions import fact
from symad.guests import asked
from symad.ops.elementwise.apply import Apply
from symad.verification.certificate.blame import Blame
from symad.verification.certificate.witness import Witness, place_of

if TYPE_CHECKING:
    from symad.verification.certificate.witness import Nested


# ---- the model that a certificate of symad.check is about ----------------------------------------


@dataclass(frozen=True)
class CertifiedModel:
    """The user's object, its graph, and the inputs by which it is differentiated."""

    given: Traceable
    graph: Graph
    wrt: tuple[sympy.Basic, ...]

    def __reduce__(self) -> tuple[type[CertifiedModel], tuple[object, ...]]:
        """Pickles the graph in place of the user's object: a Python function may not be picklable."""
        given = self.graph if callable(self.given) else self.given
        return CertifiedModel, (given, self.graph, self.wrt)


STATUSES = ("refuted", "undecided", "measured", "tested", "proved")
"""From worst to best."""

GIVEN = "given the rule of "
"""The reason begins so where a claim rests on a user's rule, which was only sampled."""

NOT_COMPARED = "nothing independent was compared"
"""What is assumed of the form of a derivative with which the others alone are compared."""

METHODS: dict[str, Callable[..., Any]] = {}
"""What stands above certificates answers for them: reports, storage and rechecking, registered there."""


class RefutedError(SymadError, AssertionError):
    """A derivative or an equality was certified to be wrong; carries the certificate."""

    def __init__(self, certificate: Certificate) -> None:
        """``certificate`` says where and why."""
        super().__init__(str(certificate))
        self.certificate = certificate

    def __reduce__(self) -> tuple[type[RefutedError], tuple[Certificate]]:
        return RefutedError, (self.certificate,)


@dataclass(frozen=True)
class Entry:
    """One element of one output of one comparison.

    Args:
        name: the output, such as ``gradient (reverse): ∂f/∂x``.
        status: "proved", "tested", "measured", "undecided" or "refuted".
        claim: what is equal to what, how it is known, and at which sizes.
        bound: the probability that 'equal' is wrong for any element of this output: 0 if proved; what
            was reached if undecided; 1 if measured, which gives none.
        assumes: what is trusted.
        witness: a point at which the two sides differ, if refuted.
        blame: where and how they differ, if refuted.
        reason: what was tried, if undecided.
        measured: figures of a floating-point comparison.
        index: the position of the element, as text; empty for scalars.
        checked: whether the checker replays a proof of it, which the certificate holds.
    """

    name: str
    status: str
    claim: str
    bound: float
    assumes: tuple[str, ...] = ()
    witness: Witness | None = None
    blame: Blame | None = None
    reason: str = ""
    measured: Mapping[str, float] | None = None
    index: str = ""
    checked: bool = False

    @property
    def label(self) -> str:
        """The name of the output with the position of the element."""
        return self.name + self.index


@dataclass(frozen=True)
class Loss:
    """A point at which a program lost digits, raised, or gave no value; its formula may be right.

    Args:
        word: "digits lost", "overflow", "no value (NaN)", or what was raised.
        name: the output.
        kind: what kind of point it is.
        point: names and values.
        expected: the exact value, to 30 digits.
        found: what was computed.
        index: the position of the element.
        digits: how many decimal digits are lost.
    """

    word: str
    name: str
    kind: str
    point: Mapping[str, Nested]
    expected: str = ""
    found: str = ""
    index: tuple[int, ...] = ()
    digits: int = 0

    @property
    def place(self) -> str:
        """The point as text."""
        return place_of(self.point)


@dataclass(frozen=True)
class ExactForm:
    """What a candidate is compared with: a value, or a derivative of a function, on a domain.

    ``left`` is its exact form, with a name for each output. A claim is made once; whatever decides it, names
    what is wrong with it, prints or saves it has all of it.
    """

    title: str
    left: Graph
    names: tuple[str, ...]
    assumes: tuple[str, ...] = ()
    derivative: Derivative | None = None
    """Of which function the candidate is which derivative; None where the claim is left = right."""
    domain: Node | None = None
    """Positive where the claim is made; None for everywhere."""
    function: Graph | None = None
    """The function of the derivative with the names that the user gives to it and to its values, if known."""


@dataclass(frozen=True)
class Comparison(ExactForm):
    """Two graphs of the same inputs that are claimed to be one function; ``left`` is the reference.

    Output k of one belongs to output k of the other.
    """

    right: Graph = field(kw_only=True)
    left_name: str = field(default="the reference", kw_only=True)
    right_name: str = field(default="the candidate", kw_only=True)

    @cached_property
    def is_symbolic(self) -> bool:
        """Whether the claim is about all sizes."""
        return bool(self.left.dims | self.right.dims)

    @property
    def groups(self) -> tuple[tuple[Node, ...], ...]:
        """All nodes: of both sides, the derivative and the domain."""
        of = (self.derivative or Derivative("", ())).groups
        domain = () if self.domain is None else (self.domain,)
        return self.left.output_nodes, self.right.output_nodes, *of, domain

    def alone(self, k: int) -> Comparison:
        """The claim about output k alone: all outputs together claim as much as these."""
        none = TupleOf((None,))
        left, right = (g.with_outputs(g.output_nodes[k : k + 1], none) for g in (self.left, self.right))
        of = self.derivative.alone(k) if self.derivative is not None else None
        return replace(self, left=left, right=right, names=self.names[k : k + 1], derivative=of)

    def __reduce__(self) -> tuple[Callable[[str], Comparison], tuple[str]]:
        """It travels as it is saved, and nothing of it is run."""
        return _arrived, (json.dumps(METHODS["write_comparison"](self)),)


def _arrived(text: str) -> Comparison:
    """A comparison from another process."""
    made: Comparison = METHODS["read_comparison"](json.loads(text))
    return made


@dataclass(frozen=True, repr=False)
class Certificate:
    """What is known about some equalities, entry by entry.

    `status` is the worst of the entries'; `bound` bounds the probability that any entry called equal
    is not. ``print(cert)`` shows it, `raise_if_refuted` raises, `to_json` and `from_json` keep it,
    `recheck` establishes it again from the graphs it holds.
    """

    title: str
    entries: tuple[Entry, ...]
    comparisons: tuple[Comparison, ...] = ()
    seed: int = 0
    primes: tuple[int, ...] = ()
    """The primes of the last identity test, if there was one."""
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    steps: int = 0
    """The work that was counted: the same on every machine."""
    notes: tuple[str, ...] = ()
    """What else a reader should know, such as a limit of wall-clock time."""
    losses: tuple[Loss, ...] = ()
    """Where a program lost digits, raised, or gave no value."""
    proofs: tuple[Proof, ...] = ()
    """What the checker replays."""
    proof_steps: int = 0
    """How many steps the checker took."""
    unchecked: tuple[str, ...] = ()
    """Why the checker replays no more than it does."""

    @property
    def checked(self) -> bool:
        """Whether everything is proved, and the checker replays all of it."""
        return bool(self.entries) and all(e.checked and e.status == "proved" for e in self.entries)

    model: CertifiedModel | None = field(default=None, compare=False, repr=False)
    """What `check` was asked about; it is not saved."""

    @cached_property
    def status(self) -> str:
        """The worst status of all entries; without one nothing was decided."""
        return min((e.status for e in self.entries), key=STATUSES.index, default="undecided")

    @property
    def bound(self) -> float:
        """The probability, at most, that some entry called proved or tested is false."""
        groups: dict[str, float] = {}
        for entry in self.entries:
            if entry.status != "refuted":  # the elements of one output share one bound
                groups[entry.name] = max(groups.get(entry.name, 0.0), entry.bound)
        return min(sum(groups.values()), 1.0)

    @property
    def assumes(self) -> tuple[str, ...]:
        """What all entries together trust."""
        return tuple(dict.fromkeys(a for e in self.entries for a in e.assumes))

    @property
    def witness(self) -> Witness | None:
        """The first witness of a refuted entry."""
        return next((e.witness for e in self.entries if e.witness is not None), None)

    def entries_of(self, status: str) -> tuple[Entry, ...]:
        """The entries of one status."""
        return tuple(e for e in self.entries if e.status == status)

    def raise_if_refuted(self) -> Certificate:
        """This certificate, or an error that shows it.

        Raises:
            RefutedError: an entry is refuted.
        """
        if self.status == "refuted":
            raise RefutedError(self)
        return self

    def __bool__(self) -> bool:
        """Whether every entry is proved or tested."""
        return self.status in ("proved", "tested")

    def __repr__(self) -> str:
        return f"<Certificate {METHODS['headline'](self)}>"

    def __str__(self) -> str:
        return str(METHODS["text"](self))

    def _repr_markdown_(self) -> str:
        return str(METHODS["markdown"](self))

    def _repr_html_(self) -> str:
        return str(METHODS["html"](self))

    def to_json(self) -> str:
        """This certificate as JSON text, with the graphs it compares."""
        return str(METHODS["write"](self))

    @staticmethod
    def from_json(text: str) -> Certificate:
        """A certificate from its JSON text. Nothing in it is executed.

        Raises:
            SavingError: the text is no certificate, or is damaged.
        """
        made: Certificate = METHODS["read"](text)
        return made

    def to_coq(self, path: Path | str, hessian: bool | None = None) -> Path:
        """Write a Coq file whose theorems say that symad's derivatives of this model are its derivatives.

        The file has the model as it was written, its gradient (or Jacobian) and its Hessian as symad computes
        them, the domain, and proofs by reflection, which coqc checks in milliseconds for each operation. The
        library that it needs, ``Symad*.v``, is written next to it. For scalar expressions and small arrays.

        Args:
            path: the file to write, ending in ``.v``.
            hessian: whether the Hessian of a scalar model is included; for at most 12 inputs by default.

        Returns:
            The path of the file.

        Raises:
            CoqError: the certificate is not one of `check`, or is refuted, or something in the model has no
                form in Coq; the message names it.
        """
        coq = asked("coq", "to_coq")
        if self.model is None:
            raise coq.CoqError("to_coq: this certificate holds no model; symad.check(f) makes one that does")
        if self.status == "refuted":
            raise coq.CoqError("to_coq: this certificate is refuted, there is nothing to prove")
        written: Path = coq.write_coq(self.model, path, hessian)
        return written

    def recheck(self, seed: int | None = None) -> Certificate:
        """The same comparisons again: proofs are replayed by the checker alone, the rest is decided anew.

        New primes are drawn unless a seed is given. What a proof claimed that is refused is decided anew, and
        a note says so.

        Raises:
            SymadError: the certificate holds no graphs (it measured a numeric function).
        """
        if not self.comparisons:
            raise SymadError("this certificate measured a numeric function and holds nothing to check again")
        made: Certificate = METHODS["recheck"](self, seed)
        return replace(made, notes=self.notes + made.notes)


# ---- what a certificate takes on trust -----------------------------------------------------------


READING = "the reading of the input as a graph"
CHECKED = " (checked against 50-digit differentiation in symad's tests)"


def functions_in(graphs: Iterable[Graph]) -> list[sympy.FunctionClass]:
    """The scalar functions that graphs apply, in loops and fused ops, too; in order of their names."""
    outputs = (node for g in graphs for node in g.output_nodes)
    found = {n.op.head for n in nodes_at_any_depth(outputs) if isinstance(n.op, Apply)}
    return sorted(found, key=lambda head: getattr(head, "__name__", str(head)))


def trusted(*graphs: Graph, derivatives: bool = True) -> tuple[str, ...]:
    """What is assumed about graphs: the reading of the input, and the derivative of each function used."""
    result = [READING]
    if derivatives:
        result.extend(_derivative_text(head) for head in functions_in(graphs) if not fact(head).flat)
    return tuple(result)


def _derivative_text(head: type[sympy.Basic]) -> str:
    name = getattr(head, "__name__", str(head))
    if fact(head).floats:
        return f"the derivative of {name}{CHECKED}"
    return f"the derivative of {name} as its author defines it"
