"""Parameters in any structure, and the dict of arrays by name on which optimizers and checkpoints work.

A structure is an array, or a dict, list, tuple, named tuple or dataclass of structures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeAlias, TypeVar

import numpy as np

from symad.core.arguments import Argument, bind, flat_values, grouped_values, leaves_of
from symad.core.arrays import Array, ArrayLike
from symad.core.graph import Graph
from symad.core.signatures import Tree
from symad.core.structures import DictOf, Structure, leaves, pack
from symad.errors import EvaluationError
from symad.tracing.grouping import is_container, structure_of

Batch: TypeAlias = "Sequence[Tree] | Mapping[str, Tree]"
"""The data of one step, in the order of the arguments or by name."""

Arrays: TypeAlias = "dict[str, np.ndarray]"
State: TypeAlias = "dict[str, Arrays]"


@dataclass(frozen=True)
class ParameterForm:
    """The structure that holds some arrays, and a name for each array."""

    structure: Structure
    names: tuple[str, ...]

    @staticmethod
    def of(tree: Any) -> ParameterForm:
        """The form of a structure; names are keys of a dict of arrays, or texts as ``['layers'][0].w``."""
        plain = isinstance(tree, Mapping) and all(
            isinstance(k, str) and not is_container(v) for k, v in tree.items()
        )
        if plain:
            return ParameterForm(DictOf(tuple(tree), (None,) * len(tree)), tuple(tree))
        structure, found = structure_of(tree, "", lambda entry: not is_container(entry))
        return ParameterForm(structure, tuple(name for name, _ in found))

    def arrays(self, tree: Tree, what: str) -> Arrays:
        """The arrays in a value of this form, by name.

        Raises:
            EvaluationError: the value has another structure; the message says where in ``what``.
        """
        return dict(zip(self.names, leaves_of(self.structure, tree, what), strict=True))

    def pack(self, arrays: Mapping[str, ArrayLike]) -> Any:
        """A value of this form with the given arrays."""
        return pack(self.structure, [arrays[name] for name in self.names])


Owner = TypeVar("Owner")


def starts(rule: Callable[[Owner, Arrays], State]) -> Callable[[Owner, Tree], State]:
    """The method ``start`` of an optimizer for parameters in any structure, from one for arrays by name."""

    @wraps(rule)
    def start(self: Owner, parameters: Tree) -> State:
        return rule(self, ParameterForm.of(parameters).arrays(parameters, "parameters"))

    return start


def steps(
    rule: Callable[[Owner, Arrays, Arrays, State, float], tuple[Arrays, State]],
) -> Callable[[Owner, Any, Any, State, float], tuple[Any, State]]:
    """The method ``step`` of an optimizer for any structure; the state is stored by name."""

    @wraps(rule)
    def step(self: Owner, parameters: Any, gradients: Any, state: State, factor: float) -> tuple[Any, State]:
        form = ParameterForm.of(parameters)
        arrays = form.arrays(parameters, "parameters")
        moved, state = rule(self, arrays, form.arrays(gradients, "gradients"), state, factor)
        return form.pack(moved), state

    return step


# ---- the arguments of a loss ------------------------------------------------------------------------


@dataclass(frozen=True)
class Trainable:
    """A loss as a function of its inputs, of which the first are parameters and the others data.

    Attributes:
        loss: the graph, with one argument for each input.
        arrays: the first values of the parameters, by the names of their inputs.
        parameters: the arguments that hold parameters.
        data: the other arguments.
        bare: whether the parameters were given as the value of one argument, not as a dict by name.
    """

    loss: Graph
    arrays: Arrays
    parameters: tuple[Argument, ...]
    data: tuple[Argument, ...]
    bare: bool

    @staticmethod
    def of(loss: Graph, parameters: Any, title: str = "") -> Trainable:
        """The parameters as the first arguments of a loss: a dict by name, or the value of the first one.

        Raises:
            EvaluationError: the arguments or the structure differ, or a value is not finite.
        """
        arguments = loss.arguments
        names = [argument.name for argument in arguments]
        by_name = isinstance(parameters, Mapping) and not _is_first(arguments, parameters, names)
        given = dict(parameters) if by_name else {names[0] if names else "": parameters}
        if names[: len(given)] != list(given):
            raise EvaluationError(
                f"the parameters are {', '.join(map(str, given))}, but the inputs of "
                f"{title or loss.name} begin with {', '.join(names[: len(given)])}"
            )
        chosen = arguments[: len(given)]
        values = flat_values(chosen, list(given.values()))
        arrays = dict(zip(map(str, loss.inputs), values, strict=False))
        for name, value in arrays.items():
            refuse_nan(f"the parameter {name}", value)
        return Trainable(loss.ungrouped(), arrays, chosen, arguments[len(given) :], not by_name)

    @property
    def data_inputs(self) -> list[str]:
        """The names of the inputs that hold data."""
        return [str(s) for s in self.loss.inputs[len(self.arrays) :]]

    def chosen(self, names: Sequence[str]) -> list[str]:
        """The inputs of some parameters, given by the names of arguments or inputs.

        Raises:
            EvaluationError: a name is neither, or no name is given.
        """
        inputs, found = iter(self.arrays), {name: [name] for name in self.arrays}
        for argument in self.parameters:
            found[argument.name] = [next(inputs) for _ in range(leaves(argument.structure))]
        unknown = [name for name in names if name not in found]
        if unknown or not names:
            shown = ", ".join(argument.name for argument in self.parameters)
            raise EvaluationError(f"chooses {', '.join(unknown) or 'nothing'}; the parameters are {shown}")
        return [name for wanted in names for name in found[wanted]]

    def batch(self, given: Batch) -> list[Any]:
        """The values of the data inputs, from those of the arguments: a tuple, or a dict by name.

        Raises:
            EvaluationError: values are missing or too many, have another structure, or hold NaN.
        """
        flat = self.values(given)
        for name, array in zip(self.data_inputs, flat, strict=True):
            refuse_nan(name, array)
        return flat

    def values(self, given: Batch, title: str = "") -> list[Any]:
        """As `batch`, but without checking the numbers; ``title`` names the loss in errors."""
        title = title or self.loss.name
        values = bind(title, self.data, (), given) if isinstance(given, Mapping) else list(given)
        if len(values) != len(self.data):
            shown = ", ".join(argument.name for argument in self.data) or "none"
            raise EvaluationError(f"a batch of {len(values)} arrays for {title}, whose data are {shown}")
        return flat_values(self.data, values)

    def pack(self, arrays: Mapping[str, Array]) -> Any:
        """Parameters in the form in which they were given, from arrays by the names of their inputs."""
        whole = grouped_values(self.parameters, [arrays[name] for name in self.arrays], lambda array: array)
        if self.bare:
            return whole[0]
        return dict(zip((argument.name for argument in self.parameters), whole, strict=True))


def _is_first(arguments: Sequence[Argument], parameters: Mapping[str, Tree], names: Sequence[str]) -> bool:
    """Whether a dict is the value of the first argument, and not a dict of arguments."""
    structure = arguments[0].structure if arguments else None
    if structure is None:
        return False
    if isinstance(structure, DictOf) and set(structure.keys) == set(parameters):
        return True
    return names[0] not in parameters


def refuse_nan(name: str, array: Array, advice: str = "clean the data first") -> None:
    """Check that an array has no NaN and no infinity.

    Raises:
        EvaluationError: an element is NaN or infinite; the message gives its position.
    """
    values = np.asarray(array)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        place = tuple(int(k) for k in np.argwhere(~np.isfinite(values))[0])
        raise EvaluationError(f"{name} holds {values[place]} at {place}; {advice}")
