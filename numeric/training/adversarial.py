"""Training of several players in turn; the loss of each depends on all parameters.

    critic = Player(critic_loss, critic_names, Adam(1e-3), steps=3)
    generator = Player(generator_loss, generator_names, Adam(1e-3))
    result = train_in_turn([critic, generator], parameters, [its_batches, codes], rounds=1000)

In every round each player takes steps that decrease its loss, in its own parameters, while those of the
others are fixed. Source: Goodfellow et al., "Generative adversarial nets" (2014), algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from symad import value_and_gradient
from symad.core.given import renamed
from symad.core.graph import Graph
from symad.core.signatures import Tree
from symad.errors import EvaluationError
from symad.numeric.lowering import lower
from symad.numeric.training.loop import Rate
from symad.numeric.training.optimizers import Arrays, Optimizer, clip_gradients
from symad.numeric.training.parameters import Batch, Trainable


@renamed(optimiser="optimizer")
@dataclass(frozen=True)
class Player:
    """One player of a game.

    Args:
        loss: a scalar graph; its first arguments are all parameters, the others are this player's data.
        names: the parameters that this player changes: arguments, or inputs inside them.
        optimizer: the optimizer that computes the steps.
        steps: the number of steps in each round.
        bound: after each step the player's parameters are clipped to [−bound, bound] (the weights of a
            Wasserstein critic; Arjovsky, Chintala, Bottou 2017, algorithm 1).
        clip: gradients with a larger norm are scaled down to this norm.
    """

    loss: Graph
    names: Sequence[str]
    optimizer: Optimizer
    steps: int = 1
    bound: float | None = None
    clip: float | None = None


@dataclass(frozen=True)
class Played:
    """The result of a game: parameters, their running averages, and each player's losses, one per step."""

    parameters: Any
    averages: Any = field(repr=False)
    losses: list[list[float]] = field(repr=False)


def train_in_turn(
    players: Sequence[Player],
    parameters: Tree,
    data: Sequence[Iterable[Batch]],
    rounds: int,
    schedule: Rate | None = None,
    average: float = 0.99,
    dtype: str = "float64",
) -> Played:
    """Let the players take their steps in turn.

    Args:
        players: the order of their turns.
        parameters: initial values of all parameters, a dict by name or the value of the first argument, see
            `symad.numeric.training.loop.train`; they are not changed in place.
        data: for each player a stream with the values of its other arguments, one for each of its steps.
        rounds: the number of turns of each player.
        schedule: a factor of the learning rates for each round.
        average: the share of the running averages that is kept in each round.
        dtype: the precision of the generated code.

    Raises:
        EvaluationError: the parameters are not those of a loss, a player has no parameters of its own, a loss
            is no longer finite (the message names the round and the player), or there are too few data.
    """
    sides = [_side(number, player, parameters) for number, player in enumerate(players)]
    if not sides:
        raise EvaluationError("a game needs players")
    kernels = [lower(value_and_gradient(problem.loss, names), dtype=dtype) for problem, names in sides]
    values: Arrays = {name: np.array(v, dtype=dtype) for name, v in sides[0][0].arrays.items()}
    averages = dict(values)
    states = [
        p.optimizer.start({name: values[name] for name in names})
        for p, (_, names) in zip(players, sides, strict=True)
    ]
    streams = [iter(stream) for stream in data]
    losses: list[list[float]] = [[] for _ in players]
    for turn in range(rounds):
        factor = 1.0 if schedule is None else schedule(turn)
        for k, (player, (problem, names)) in enumerate(zip(players, sides, strict=True)):
            for _ in range(player.steps):
                value, *slopes = kernels[k](*values.values(), *problem.batch(_next(streams[k], turn, k)))
                if not math.isfinite(value):
                    raise EvaluationError(
                        f"the loss of player {k} is {value} in round {turn}; lower its learning rate"
                    )
                own = {name: values[name] for name in names}
                gradients = clip_gradients(dict(zip(names, slopes, strict=True)), player.clip)
                moved, states[k] = player.optimizer.step(own, gradients, states[k], factor)
                if player.bound is not None:
                    moved = {name: np.clip(v, -player.bound, player.bound) for name, v in moved.items()}
                values = {name: moved.get(name, v) for name, v in values.items()}
                losses[k].append(float(value))
        averages = {name: average * averages[name] + (1 - average) * v for name, v in values.items()}
    pack = sides[0][0].pack
    return Played(pack(values), pack(averages), losses)


def _side(number: int, player: Player, parameters: Tree) -> tuple[Trainable, list[str]]:
    """The loss of a player as a function of inputs, and the inputs that the player changes."""
    problem = Trainable.of(player.loss, parameters, f"the loss of player {number}")
    try:
        return problem, problem.chosen(player.names)
    except EvaluationError as wrong:
        raise EvaluationError(f"player {number} {wrong}") from None


def _next(stream: Iterator[Batch], turn: int, number: int) -> Batch:
    for batch in stream:
        return batch
    raise EvaluationError(f"the data of player {number} end in round {turn}; give as many batches as steps")
