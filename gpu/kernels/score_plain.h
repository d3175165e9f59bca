// The score text written by hand: t = s, every pair or (SCORE_CAUSAL) the pairs with k <= q.
struct ScoreArgs { int n, m; };
struct ScoreHead { int unused; };
struct ScoreRow { int unused; };
struct ScoreColumn { int unused; };

DEVICE ScoreHead score_head(const ScoreArgs&, int, int) { return {0}; }
DEVICE ScoreRow score_row(const ScoreArgs&, const ScoreHead&, int, int, int) { return {0}; }
DEVICE ScoreColumn score_column(const ScoreArgs&, const ScoreHead&, int, int, int) { return {0}; }
DEVICE Real score_mod(Real s, const ScorePair&) { return s; }
DEVICE void score_grad(Real s, const ScorePair&, ScoreGrad& out) {
  out.t = s;
  out.ds = 1;
}
#if SCORE_CAUSAL
DEVICE bool mask_mod(const ScorePair& at) { return at.k <= at.q; }
DEVICE int score_tile(const ScoreArgs&, const ScoreHead&, int, int, int q0, int q1, int k0, int k1) {
  return k0 >= q1 ? TILE_EMPTY : k1 <= q0 + 1 ? TILE_FULL : TILE_PARTIAL;
}
DEVICE void score_k_range(const ScoreArgs&, const ScoreHead&, int, int, int, int q1, int&, int& hi) {
  hi = smallest(hi, q1);
}
DEVICE void score_q_range(const ScoreArgs&, const ScoreHead&, int, int, int k0, int, int& lo, int&) {
  lo = largest(lo, k0);
}
#else
DEVICE bool mask_mod(const ScorePair&) { return true; }
DEVICE int score_tile(const ScoreArgs&, const ScoreHead&, int, int, int, int, int, int) { return TILE_FULL; }
DEVICE void score_k_range(const ScoreArgs&, const ScoreHead&, int, int, int, int, int&, int&) {}
DEVICE void score_q_range(const ScoreArgs&, const ScoreHead&, int, int, int, int, int&, int&) {}
#endif
