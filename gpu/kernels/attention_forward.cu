// o = softmax(f(scale q kᵀ)) v and lse = log Σ exp f(scale q kᵀ), tile by tile with an online softmax
// (Milakov and Gimelshein 2018; Dao et al. 2022, algorithm 1; Dao 2023, algorithm 1).
//
// A block owns OWN query rows of one head and loops over tiles of SPAN keys. Its warps own 16 MT rows each and
// exchange no data: probabilities pass from the accumulators of q kᵀ to the operand of p v in registers. With two
// stages of keys and values, cp.async fills one while the other is used: one barrier per tile.
//
// grid (query tiles × value slices, heads, batch), block THREADS; slices of SLICE columns of v.

constexpr int SLICES = DV / SLICE, OUT = SLICE / 8;
constexpr int Q_BYTES = Tile<E, D>::size(OWN), K_BYTES = Tile<E, D>::size(SPAN),
              V_BYTES = Tile<E, SLICE>::size(SPAN);

struct Online {  // per row: the maximum subtracted so far (times log2 e), and this lane's part of the sum
  Real base[MT][2], sum[MT][2];
};

// x := t, or -inf where hidden.
template <bool MASKED>
DEVICE void apply_score(Real (&x)[MT][BLOCKS][4], const ScoreArgs& args, const ScoreHead& head,
                        const ScoreRow (&rows)[MT][2], const Sizes& sizes, const Scale& c, int b, int h,
                        int q0, int k0) {
#if SCORE_PLAIN
  if (!MASKED) return;
#endif
  int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int n = 0; n < BLOCKS; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      int key = k0 + 8 * n + 2 * t + e, k = MASKED ? smallest(key, sizes.m - 1) : key;
      ScoreColumn column = score_column(args, head, b, h, k);
#pragma unroll
      for (int m = 0; m < MT; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int row = q0 + 16 * m + 8 * half + g, q = MASKED ? smallest(row, sizes.n - 1) : row;
          ScorePair at{args, head, rows[m][half], column, b, h, q, k};
          Real& value = x[m][n][2 * half + e];
          value = scored(value, c, at);
          if (MASKED && !(key < sizes.m && mask_mod(at))) value = -infinity(Real());
        }
    }
}

// x := exp(x - base), with sums; out is only rescaled if some maximum has grown by a factor of 2^8.
DEVICE void online_softmax(Real (&x)[MT][BLOCKS][4], Online& state, Real (&out)[MT][OUT][4],
                           Real log2_scale) {
  Real highest[MT][2];
  bool grown = false;
#pragma unroll
  for (int m = 0; m < MT; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Real top = x[m][0][2 * half];
#pragma unroll
      for (int n = 0; n < BLOCKS; ++n)
        top = real_max(top, real_max(x[m][n][2 * half], x[m][n][2 * half + 1]));
      highest[m][half] = quad_max(top) * log2_scale;
      grown = grown || highest[m][half] > state.base[m][half] + Real(8);
    }
  if (__any_sync(~0u, grown)) {
#pragma unroll
    for (int m = 0; m < MT; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        Real base = real_max(state.base[m][half], highest[m][half]);
        Real keep = base == -infinity(Real()) ? Real(1) : exp2_fast(state.base[m][half] - base);
        state.base[m][half] = base;
        state.sum[m][half] *= keep;
#pragma unroll
        for (int n = 0; n < OUT; ++n) {
          out[m][n][2 * half] *= keep;
          out[m][n][2 * half + 1] *= keep;
        }
      }
  }
#pragma unroll
  for (int m = 0; m < MT; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Real base = state.base[m][half] == -infinity(Real()) ? Real(0) : state.base[m][half];
      Real part = 0;  // sums in two levels, so that fewer roundings are relative to the whole sum
#pragma unroll
      for (int n = 0; n < BLOCKS; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          Real& value = x[m][n][2 * half + e];
          value = exp2_fast(value * log2_scale - base);
          part += value;
        }
      state.sum[m][half] += part;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    attention_forward(const Storage* q, const Storage* k, const Storage* v, Storage* o, Real* lse, int heads,
                      int groups, int N, int M, Real scale, ScoreArgs args) {
  DYNAMIC_SHARED(shared);
  const smem_t q_tile = smem_address(shared), stages = q_tile + Q_BYTES;
  const int slice = int(blockIdx.x) % SLICES, h = int(blockIdx.y), b = int(blockIdx.z);
  const int q0 =
      (int(gridDim.x) / SLICES - 1 - int(blockIdx.x) / SLICES) * OWN;  // causal: the long rows first
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const int own0 = q0 + warp * 16 * MT;
  const Sizes sizes{heads, groups, N, M};
  const Scale c = make_scale(scale);
  const size_t row = (size_t(b) * heads + h) * N, key_row = (size_t(b) * groups + h / (heads / groups)) * M;
  const Storage* keys = k + key_row * HEAD_DIM;
  const Storage* values = v + key_row * VALUE_DIM + slice * SLICE;

  const ScoreHead head = score_head(args, b, h);
  ScoreRow rows[MT][2];
#pragma unroll
  for (int m = 0; m < MT; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      rows[m][half] = score_row(args, head, b, h, smallest(own0 + 16 * m + 8 * half + g, N - 1));

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
    load_tile<E, D, SPAN, THREADS>(at, keys, index * SPAN, M, HEAD_DIM, HEAD_DIM);
    load_tile<E, SLICE, SPAN, THREADS>(at + K_BYTES, values, index * SPAN, M, VALUE_DIM,
                                       VALUE_DIM - slice * SLICE);
    cp_async_commit();
  };

  const smem_t lane_q = q_tile + smem_t(P::lane_a<D>(lane) + warp * 16 * MT * Tile<E, D>::PITCH);
  const smem_t lane_k = stages + smem_t(P::lane_b<D>(lane)),
               lane_v = stages + smem_t(K_BYTES + P::lane_bt<SLICE>(lane));

  Online state;
  Real out[MT][OUT][4];
#pragma unroll
  for (int m = 0; m < MT; ++m) {
    clear(out[m]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      state.base[m][half] = -infinity(Real());
      state.sum[m][half] = 0;
    }
  }

  Step step = step_from(largest(low, 0) / SPAN);
  if (step.more()) {
    load_tile<E, D, OWN, THREADS>(q_tile, q + row * HEAD_DIM, q0, N, HEAD_DIM, HEAD_DIM);
    load(step.index(), 0);
  }
  for (int stage = 0; step.more(); stage = STAGES == 2 ? stage ^ 1 : 0) {
    cp_async_wait<0>();
    block_sync();  // this tile has arrived for all; all are done with the other stage
    Step next;
    if (STAGES == 2) {
      next = step_from(step.index() + 1);
      if (next.more()) load(next.index(), stage ^ 1);
    }

    const smem_t offset = smem_t(stage * (K_BYTES + V_BYTES));
#pragma unroll 1
    for (int part = 0; part < SPAN; part += PART) {
      Real x[MT][BLOCKS][4];
#pragma unroll
      for (int m = 0; m < MT; ++m) clear(x[m]);
      product_abt<E, D>(x, lane_q, lane_k + offset + smem_t(part * Tile<E, D>::PITCH));
      if (step.kind() == TILE_FULL)
        apply_score<false>(x, args, head, rows, sizes, c, b, h, own0, step.index() * SPAN + part);
      else
        apply_score<true>(x, args, head, rows, sizes, c, b, h, own0, step.index() * SPAN + part);
      online_softmax(x, state, out, c.log2);
      product_wb<E, SLICE>(out, x, lane_v + offset + smem_t(part * Tile<E, SLICE>::PITCH));
    }
    if (STAGES == 1) {
      next = step_from(step.index() + 1);
      block_sync();
      if (next.more()) load(next.index(), 0);
    }
    step = next;
  }

  Real factor[MT][2];
#pragma unroll
  for (int m = 0; m < MT; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Real total = quad_sum(state.sum[m][half]);
      factor[m][half] = total > 0 ? 1 / total : Real(0);
      int at = own0 + 16 * m + 8 * half + g;
      if (slice == 0 && t == 0 && at < N)
        lse[row + at] = total > 0 ? (state.base[m][half] + real_log2(total)) * LN2 : -infinity(Real());
    }
  store_rows<E>(o + row * VALUE_DIM, out, own0, N, slice * SLICE, VALUE_DIM, factor);
}
