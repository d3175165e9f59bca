"""Losses that align a language model with demonstrations, preferences and rewards.

With π the model, π_ref the model before, π_old the model that generated the samples, w and l the preferred
and the other answer, Δ = β (log π/π_ref (w) − log π/π_ref (l)), ρ = π/π_old, u = π_ref/π:

    fine-tuning    −Σ_t m_t log π(y_t | before t) / Σ_t m_t,   m_t = 1 on the answer, 0 on the prompt
    reward model   −mean log σ(r_w − r_l)
    DPO            −mean log σ(Δ)
    PPO            mean min(ρ A, clip(ρ, 1 − ε, 1 + ε) A)                        (to be maximized)
    GRPO           the same with A_i = (r_i − mean r)/std r over the answers to one question, minus β times
                   the mean of u − log u − 1, whose mean under π is KL(π ‖ π_ref)

Gradients, which the tests prove: ∂(reward loss)/∂r_w = −σ(r_l − r_w); ∂DPO/∂log π(w) = −β σ(−Δ) and the
opposite for l; at π = π_old the slope of PPO in log π is A, and 0 where the clip is active and better for
the objective. The best π for E r − β KL(π ‖ π_ref) is π ∝ π_ref e^{r/β}, and there Δ = r_w − r_l.

Shapes: scores (..., T, |V|), targets and masks (..., T); log-probabilities, rewards and advantages one for
each answer, (N,), or (questions, G) for groups. Sources: Ouyang et al., "InstructGPT" (2022), equation 1;
Rafailov et al., "Direct preference optimization" (2023), equations 4, 7 and section 4; Schulman et al.,
"Proximal policy optimization" (2017), equation 7; Shao et al., "DeepSeekMath" (2024), equations 3 and 4;
the estimate of KL: Schulman (2020).
"""

from __future__ import annotations

import numpy as np

from symad.core.arrays import Array
from symad.errors import ShapeError, SymadError
from symad.functions import expm1, softplus
from symad.models.layers.losses import log_likelihoods, masked_cross_entropy


def sequence_log_probability(scores: Array, targets: Array, mask: Array) -> Array:
    """Σ_t m_t log π(y_t | before t): scores (..., T, |V|), targets and mask (..., T) -> (...)."""
    _same("targets and mask", targets, mask)
    return np.sum(log_likelihoods(scores, targets) * mask, axis=-1)


def fine_tuning_loss(scores: Array, targets: Array, mask: Array) -> Array:
    """The mean of −log π(y_t) over the positions with m_t = 1, of all sequences together."""
    return masked_cross_entropy(scores, targets, mask)


def reward_loss(chosen: Array, rejected: Array) -> Array:
    """−mean log σ(r_w − r_l), the model of Bradley & Terry: rewards (N,) of both answers."""
    _same("the rewards", chosen, rejected)
    return np.mean(softplus(rejected - chosen))


def dpo_loss(
    chosen: Array, rejected: Array, ref_chosen: Array, ref_rejected: Array, beta: Array | float = 0.1
) -> Array:
    """−mean log σ(β (log π/π_ref (w) − log π/π_ref (l))), from log-probabilities (N,)."""
    _same("the log-probabilities", chosen, rejected, ref_chosen, ref_rejected)
    return np.mean(softplus(-beta * ((chosen - ref_chosen) - (rejected - ref_rejected))))


def group_advantages(rewards: Array) -> Array:
    """A_i = (r_i − mean r) / std r over the last axis (..., G); 0 in a group whose rewards are all equal."""
    centered = rewards - np.mean(rewards, axis=-1, keepdims=True)
    variance = np.mean(centered**2, axis=-1, keepdims=True)
    spread = variance > 0
    # A group without spread gets a finite root first, so that 0/0 does not occur.
    return np.where(spread, centered / np.sqrt(np.where(spread, variance, 1.0)), 0.0)


def clipped_objective(log_p: Array, log_old: Array, advantages: Array, epsilon: Array | float = 0.2) -> Array:
    """The mean of min(ρ A, clip(ρ, 1 − ε, 1 + ε) A), ρ = π/π_old, to be maximized: arrays of one shape."""
    _same("log-probabilities and advantages", log_p, log_old, advantages)
    ratio = np.exp(log_p - log_old)
    return np.mean(np.minimum(ratio * advantages, np.clip(ratio, 1 - epsilon, 1 + epsilon) * advantages))


def kl_estimate(log_p: Array, log_other: Array) -> Array:
    """U − log u − 1 ≥ 0 with u = π_other/π, whose mean over samples of π is KL(π ‖ π_other)."""
    _same("the log-probabilities", log_p, log_other)
    return expm1(log_other - log_p) - (log_other - log_p)


def grpo_objective(
    log_p: Array, log_old: Array, log_ref: Array, rewards: Array,
    epsilon: Array | float = 0.2, beta: Array | float = 0.04, against: str = "reference",
) -> Array:  # fmt: skip
    """The clipped objective with the advantages of groups, minus β KL, to be maximized.

    Args:
        log_p: log π of the answers, (G,) or (questions, G).
        log_old: log π_old.
        log_ref: log π_ref.
        rewards: r, in the same shape; groups lie along the last axis.
        epsilon: the clip.
        beta: the weight of the divergence.
        against: "reference" for KL(π ‖ π_ref), "old" for KL(π ‖ π_old).

    Raises:
        SymadError: another ``against``.
        ShapeError: arrays of different shapes.
    """
    if against not in ("reference", "old"):
        raise SymadError(f"against={against!r} is not 'reference' or 'old'")
    _same("log-probabilities and rewards", log_p, log_ref, rewards)
    divergence = np.mean(kl_estimate(log_p, log_ref if against == "reference" else log_old))
    return clipped_objective(log_p, log_old, group_advantages(rewards), epsilon) - beta * divergence


def best_policy(log_ref: Array, rewards: Array, beta: Array | float) -> Array:
    """log π of the maximum of E r − β KL(π ‖ π_ref) over a finite set: log_ref and rewards (answers,)."""
    tilted = log_ref + rewards / beta
    top = np.max(tilted)
    return tilted - top - np.log(np.sum(np.exp(tilted - top)))


def _same(what: str, *arrays: Array) -> None:
    shapes = [np.shape(a) if not hasattr(a, "shape") else tuple(a.shape) for a in arrays]
    if any(shape != shapes[0] for shape in shapes):
        raise ShapeError(f"{what} have the shapes {', '.join(map(str, shapes))}; they must be the same")
