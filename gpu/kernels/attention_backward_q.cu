// Δ; then q̄, row sums of the parameters' cotangents, and the cotangents that are not summed.

// One warp per row. base[row] = L log2(e), +inf if no key is visible, so that exp2(t - base) = 0 there.
// grid (ceil(rows / WARPS)), rows = B H N.
extern "C" __global__ void __launch_bounds__(THREADS)
    attention_delta(const Storage* o, const Storage* o_bar, const Real* lse, const Real* lse_bar, Real* delta,
                    Real* base, long long count) {
  const long long row = (long long)(blockIdx.x) * WARPS + threadIdx.x / 32;
  const int lane = int(threadIdx.x) % 32;
  Real sum = 0;
  if (row < count)
    for (int i = lane; i < VALUE_DIM; i += 32)
      sum += unpack<E>(o[row * VALUE_DIM + i]) * unpack<E>(o_bar[row * VALUE_DIM + i]);
#pragma unroll
  for (int bit = 16; bit; bit >>= 1) sum += __shfl_xor_sync(~0u, sum, bit);
  if (row < count && lane == 0) {
    delta[row] = sum - (lse_bar ? lse_bar[row] : Real(0));
    base[row] = lse[row] == -infinity(Real()) ? infinity(Real()) : lse[row] * LOG2E;
  }
}

// grid (query tiles × slices, heads, batch); each slice of SLICE columns of q̄ computes the scores again.
constexpr int SLICES = D / SLICE, OUT = SLICE / 8;
constexpr int Q_BYTES = QueryTile::size(OWN), O_BYTES = ValueTile::size(OWN);
constexpr int K_BYTES = QueryTile::size(SPAN), V_BYTES = ValueTile::size(SPAN);

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    attention_backward_q(const Storage* q, const Storage* k, const Storage* v, const Storage* o_bar,
                         const Real* base, const Real* delta, Storage* q_bar, Real* row_sums, Real* pairs,
                         int heads, int groups, int N, int M, Real scale, ScoreArgs args) {
  DYNAMIC_SHARED(shared);
  const smem_t q_tile = smem_address(shared), o_tile = q_tile + Q_BYTES, stages = o_tile + O_BYTES;
  const int slice = int(blockIdx.x) % SLICES, h = int(blockIdx.y), b = int(blockIdx.z);
  const int q0 = (int(gridDim.x) / SLICES - 1 - int(blockIdx.x) / SLICES) * OWN;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const int own0 = q0 + warp * 16 * MT;
  const Sizes sizes{heads, groups, N, M};
  const Scale c = make_scale(scale);
  // Positions in the arrays are computed where they are used: registers are scarce in the loop.
  auto first_row = [&] { return (size_t(b) * opaque(heads) + h) * N; };

  const ScoreHead head = score_head(args, b, h);
  ScoreRow rows[MT][2];
  Real sums[MT][2][AT_LEAST_ONE(SCORE_ROWS)];
#pragma unroll
  for (int m = 0; m < MT; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rows[m][half] = score_row(args, head, b, h, smallest(own0 + 16 * m + 8 * half + g, N - 1));
#pragma unroll
      for (int i = 0; i < SCORE_ROWS; ++i) sums[m][half][i] = 0;
    }

  int low = 0, high = M;
  score_k_range(args, head, b, h, q0, smallest(q0 + OWN, N), low, high);
  auto step_from = [&](int index) -> Step {
    for (; index * SPAN < high; ++index) {
      int kind = tile_kind(args, head, sizes, b, h, q0, q0 + OWN, index * SPAN, (index + 1) * SPAN);
      if (kind != TILE_EMPTY) return make_step(index, kind);
    }
    return end_of_walk();
  };
  auto load = [&](int index, int stage) {
    smem_t at = stages + smem_t(stage * (K_BYTES + V_BYTES));
    const size_t key_row = (size_t(b) * groups + h / (opaque(heads) / groups)) * M;
    const Storage *keys = k + key_row * HEAD_DIM, *values = v + key_row * VALUE_DIM;
    load_tile<E, D, SPAN, THREADS>(at, keys, index * SPAN, M, HEAD_DIM, HEAD_DIM);
    load_tile<E, DV, SPAN, THREADS>(at + K_BYTES, values, index * SPAN, M, VALUE_DIM, VALUE_DIM);
    cp_async_commit();
  };
  // x := p, y := s̄, and the parameters' sums of one tile.
  auto cotangents = [&](auto masked, Real(&x)[MT][BLOCKS][4], Real(&y)[MT][BLOCKS][4], int k0) {
    constexpr bool MASKED = decltype(masked)::value;
    const size_t row = first_row();
    Real row_base[MT][2], row_delta[MT][2];
#pragma unroll
    for (int m = 0; m < MT; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int at = smallest(own0 + 16 * m + 8 * half + g, N - 1);
        row_base[m][half] = base[row + at];
        row_delta[m][half] = delta[row + at];
      }
#pragma unroll
    for (int n = 0; n < BLOCKS; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        int key = k0 + 8 * n + 2 * t + e, kc = MASKED ? smallest(key, M - 1) : key;
        ScoreColumn column = score_column(args, head, b, h, kc);
#pragma unroll
        for (int m = 0; m < MT; ++m)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            int query = own0 + 16 * m + 8 * half + g, qc = MASKED ? smallest(query, N - 1) : query,
                i = 2 * half + e;
            ScorePair at{args, head, rows[m][half], column, b, h, qc, kc};
            ScoreGrad grad;
            Real t_bar = pair_cotangents<MASKED>(x[m][n][i], y[m][n][i], row_base[m][half],
                                                 row_delta[m][half], key < M && query < N, c, at, grad);
#pragma unroll
            for (int j = 0; j < SCORE_ROWS; ++j) sums[m][half][j] += parameter_cotangent(t_bar, grad.row[j]);
#pragma unroll
            for (int j = 0; j < SCORE_PAIRS; ++j)
              if (slice == 0 && key < M && query < N)
                pairs[((size_t(j) * gridDim.z * heads * N) + row + query) * M + key] =
                    parameter_cotangent(t_bar, grad.pair[j]);
          }
      }
  };

  const int warp_row = warp * 16 * MT;
  const smem_t lane_q = q_tile + smem_t(P::lane_a<D>(lane) + warp_row * QueryTile::PITCH);
  const smem_t lane_o = o_tile + smem_t(P::lane_a<DV>(lane) + warp_row * ValueTile::PITCH);
  const smem_t lane_k = stages + smem_t(P::lane_b<D>(lane)),
               lane_v = stages + smem_t(K_BYTES + P::lane_b<DV>(lane));
  const smem_t lane_kt =
      QueryTile::move(stages + smem_t(P::lane_bt<D>(lane)), 0, slice * SLICE * int(sizeof(Storage)));
  Real out[MT][OUT][4];
#pragma unroll
  for (int m = 0; m < MT; ++m) clear(out[m]);

  Step step = step_from(largest(low, 0) / SPAN);
  if (step.more()) {
    const size_t row = first_row();
    load_tile<E, D, OWN, THREADS>(q_tile, q + row * HEAD_DIM, q0, N, HEAD_DIM, HEAD_DIM);
    load_tile<E, DV, OWN, THREADS>(o_tile, o_bar + row * VALUE_DIM, q0, N, VALUE_DIM, VALUE_DIM);
    load(step.index(), 0);
  }
  for (int stage = 0; step.more(); stage = STAGES == 2 ? stage ^ 1 : 0) {
    cp_async_wait<0>();
    block_sync();
    Step next;
    if (STAGES == 2) {
      next = step_from(step.index() + 1);
      if (next.more()) load(next.index(), stage ^ 1);
    }

    const smem_t offset = smem_t(stage * (K_BYTES + V_BYTES));
#pragma unroll 1
    for (int part = 0; part < SPAN; part += PART) {
      const smem_t down = offset + smem_t(part * QueryTile::PITCH);
      Real x[MT][BLOCKS][4], y[MT][BLOCKS][4];
#pragma unroll
      for (int m = 0; m < MT; ++m) {
        clear(x[m]);
        clear(y[m]);
      }
      product_abt<E, D>(x, lane_q, lane_k + down);
      product_abt<E, DV>(y, lane_o, lane_v + offset + smem_t(part * ValueTile::PITCH));
      if (step.kind() == TILE_FULL)
        cotangents(Constant<bool, false>(), x, y, step.index() * SPAN + part);
      else
        cotangents(Constant<bool, true>(), x, y, step.index() * SPAN + part);
      product_wb<E, D>(out, y, lane_kt + down);
    }
    if (STAGES == 1) {
      next = step_from(step.index() + 1);
      block_sync();
      if (next.more()) load(next.index(), 0);
    }
    step = next;
  }

  const size_t row = first_row();
  Real factor[MT][2];
#pragma unroll
  for (int m = 0; m < MT; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      factor[m][half] = scale;
#pragma unroll
      for (int j = 0; j < SCORE_ROWS; ++j) {
        Real sum = quad_sum(sums[m][half][j]);
        int at = own0 + 16 * m + 8 * half + g;
        if (slice == 0 && t == 0 && at < N) row_sums[size_t(j) * gridDim.z * heads * N + row + at] = sum;
      }
    }
  store_rows<E>(q_bar + row * HEAD_DIM, out, own0, N, slice * SLICE, HEAD_DIM, factor);
}
