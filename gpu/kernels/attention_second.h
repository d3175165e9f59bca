// Second derivatives of attention: tangents of the cotangents along (q̇, k̇, v̇) and (ō̇, L̄̇), parameters held fixed.
// With ṡ = scale (q̇ kᵀ + q k̇ᵀ), ṫ = f'(s) ∘ ṡ and the forward tangents L̇ = Σ p ∘ ṫ, ȯ of attention_tangent.cu:
//
//   ṗ = p ∘ (ṫ - L̇),   ẇ = ō̇ vᵀ + ō v̇ᵀ (w = ō vᵀ),   Δ̇ = rowsum(ō̇ ∘ o + ō ∘ ȯ) - L̄̇,
//   t̄̇ = ṗ ∘ (w - Δ) + p ∘ (ẇ - Δ̇),   s̄̇ = t̄̇ ∘ f'(s) + t̄ ∘ f''(s) ∘ ṡ,
//   q̄̇ = scale (s̄̇ k + s̄ k̇),   k̄̇ = scale (s̄̇ᵀ q + s̄ᵀ q̇),   v̄̇ = ṗᵀ ō + pᵀ ō̇:
//
// the rules of attention_backward.h, differentiated once more. A Hessian-vector product through attention
// consists of these. As there, every sum has one owner.

typedef Tile<E, D> QueryTile;
typedef Tile<E, DV> ValueTile;

struct PairSecond { Real p, p_dot, s_bar, s_bar_dot; };
struct RowSecond { Real base, delta, lse_dot, delta_dot; };  // of a query: L log2(e), Δ, L̇, Δ̇

// From x = q·k, x_dot = q̇·k + q·k̇, w = ō·v and w_dot = ō̇·v + ō·v̇.
DEVICE PairSecond second_cotangents(Real x, Real x_dot, Real w, Real w_dot, const RowSecond& row, bool seen,
                                    Real scale, const ScorePair& at) {
  if (!seen) return {0, 0, 0, 0};
  const Real s = x * scale, s_dot = x_dot * scale;
#if SCORE_PLAIN
  const Real t = s, slope = 1, curvature = 0;
#else
  Real t, slope, curvature;
  score_second(s, at, t, slope, curvature);
#endif
  const Real p = exp2_fast(t * LOG2E - row.base), p_dot = p * (slope * s_dot - row.lse_dot);
  const Real t_bar = p * (w - row.delta), t_bar_dot = p_dot * (w - row.delta) + p * (w_dot - row.delta_dot);
  return {p, p_dot, t_bar * slope, t_bar_dot * slope + t_bar * curvature * s_dot};
}
