"""Training of several players, each with its own loss of all parameters, in turn.

    critic = Player(critic_loss, critic_names, Adam(1e-3), steps=3)
    generator = Player(generator_loss, generator_names, Adam(1e-3))
    result = train_in_turn([critic, generator], parameters, [its_batches, codes], rounds=1000)

In every round each player takes its steps downhill in its own parameters; the others' stand still. Source:
Goodfellow et al., "Generative adversarial nets" (2014), algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symad import value_and_gradient
from symad.core.graph import Graph
from symad.errors import EvaluationError
from symad.numeric.lowering import lower
from symad.numeric.training.loop import Rate
from symad.numeric.training.optimisers import Arrays, Optimiser, clip_gradients


@dataclass(frozen=True)
class Player:
    """One side of a game.

    Args:
        loss: a scalar graph whose inputs are all parameters, by name and in order, then this player's data.
        names: the parameters that this player chooses.
        optimiser: what takes the steps.
        steps: steps in each round.
        bound: after each step the player's parameters are clipped to [−bound, bound] (the weights of a
            Wasserstein critic; Arjovsky, Chintala, Bottou 2017, algorithm 1).
        clip: gradients of larger norm are scaled down to it.
    """

    loss: Graph
    names: Sequence[str]
    optimiser: Optimiser
    steps: int = 1
    bound: float | None = None
    clip: float | None = None


@dataclass(frozen=True)
class Played:
    """What a game leaves: parameters, their running averages, and each player's losses, one a step."""

    parameters: Arrays
    averages: Arrays = field(repr=False)
    losses: list[list[float]] = field(repr=False)


def train_in_turn(
    players: Sequence[Player],
    parameters: Arrays,
    data: Sequence[Iterable[tuple[Any, ...]]],
    rounds: int,
    schedule: Rate | None = None,
    average: float = 0.99,
    dtype: str = "float64",
) -> Played:
    """Let the players take their steps in turn.

    Args:
        players: the order of their turns.
        parameters: initial values of all parameters; they are not changed in place.
        data: for each player a stream with one tuple of arrays for each of its steps.
        rounds: how many turns each player has.
        schedule: a factor of the learning rates for each round.
        average: the running averages keep this share of themselves in each round.
        dtype: the precision of the generated code.

    Raises:
        EvaluationError: parameters that are not a loss's, a player without parameters of its own, a loss
            that is no longer finite (it names the round and the player), or too little data.
    """
    for number, player in enumerate(players):
        _check(number, player, parameters)
    kernels = [lower(value_and_gradient(p.loss, list(p.names)), dtype=dtype) for p in players]
    values: Arrays = {name: np.array(v, dtype=dtype) for name, v in parameters.items()}
    averages = dict(values)
    states = [p.optimiser.start({name: values[name] for name in p.names}) for p in players]
    streams = [iter(stream) for stream in data]
    losses: list[list[float]] = [[] for _ in players]
    for turn in range(rounds):
        factor = 1.0 if schedule is None else schedule(turn)
        for k, player in enumerate(players):
            for _ in range(player.steps):
                value, *slopes = kernels[k](*values.values(), *_next(streams[k], turn, k))
                if not math.isfinite(value):
                    raise EvaluationError(
                        f"the loss of player {k} is {value} in round {turn}; lower its learning rate"
                    )
                own = {name: values[name] for name in player.names}
                gradients = clip_gradients(dict(zip(player.names, slopes, strict=True)), player.clip)
                moved, states[k] = player.optimiser.step(own, gradients, states[k], factor)
                if player.bound is not None:
                    moved = {name: np.clip(v, -player.bound, player.bound) for name, v in moved.items()}
                values = {name: moved.get(name, v) for name, v in values.items()}
                losses[k].append(float(value))
        averages = {name: average * averages[name] + (1 - average) * v for name, v in values.items()}
    return Played(values, averages, losses)


def _check(number: int, player: Player, parameters: Arrays) -> None:
    inputs = [str(s) for s in player.loss.inputs[: len(parameters)]]
    if inputs != list(parameters):
        raise EvaluationError(
            f"the parameters are {', '.join(parameters)}, but the inputs of the loss of player {number} "
            f"begin with {', '.join(inputs)}"
        )
    unknown = [name for name in player.names if name not in parameters]
    if unknown or not player.names:
        raise EvaluationError(
            f"player {number} chooses {', '.join(unknown) or 'nothing'}; the parameters are "
            f"{', '.join(parameters)}"
        )


def _next(stream: Iterator[tuple[Any, ...]], turn: int, number: int) -> tuple[Any, ...]:
    for batch in stream:
        return tuple(batch)
    raise EvaluationError(f"the data of player {number} end in round {turn}; give as many batches as steps")
