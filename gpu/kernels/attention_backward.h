// Cotangents of attention, tile by tile from the saved log-sum-exp L (Dao et al. 2022, algorithm 4; Dao 2023,
// algorithm 2), with a score function f:
//
//   Δ = rowsum(ō ∘ o) - L̄,  p = exp(t - L),  t̄ = p ∘ (ō vᵀ - Δ),  s̄ = t̄ ∘ f'(s),
//   v̄ = pᵀ ō,  q̄ = scale s̄ k,  k̄ = scale s̄ᵀ q,  θ̄ = Σ t̄ ∂f/∂θ.
//
// Deterministic: every sum has one owner and a fixed order. `backward_q` owns query rows and loops over keys;
// `backward_kv` owns key rows and loops over the queries of all heads that share them, on transposed scores
// k qᵀ, so that pᵀ and s̄ᵀ pass from accumulators to operands in registers. The cost compared with one fused
// kernel with atomic additions is 7 matrix products instead of 5.

typedef Tile<E, D> QueryTile;
typedef Tile<E, DV> ValueTile;

// From x = q·k and y = ō·v: x := p and y := s̄ (without the factor scale); returns t̄.
template <bool MASKED>
DEVICE Real pair_cotangents(Real& x, Real& y, Real base, Real delta, bool inside, const Scale& c,
                            const ScorePair& at, ScoreGrad& grad) {
#if SCORE_PLAIN
  Real p = exp2_fast(x * c.log2 - base), slope = 1;
#else
  score_grad(x * c.scale, at, grad);
  Real p = exp2_fast(grad.t * LOG2E - base), slope = grad.ds;
#endif
  Real t_bar = p * (y - delta), s_bar = SCORE_PLAIN ? t_bar : t_bar * slope;
  if (MASKED && !(inside && mask_mod(at))) p = t_bar = s_bar = 0;
  x = p;
  y = s_bar;
  return t_bar;
}
// t̄ ∂t/∂θ; zero at hidden pairs, where the derivative may be anything.
DEVICE Real parameter_cotangent(Real t_bar, Real partial) { return t_bar == 0 ? Real(0) : t_bar * partial; }
