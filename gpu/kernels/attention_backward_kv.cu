// k̄ and v̄ (WITH_K, WITH_V), and column sums of the parameters' cotangents.
// grid (key tiles × slices, key heads, batch); SLICE columns of k̄ or v̄ each if only one of them is computed.
//
// WITH_Q also adds scale s̄ k to q_sum (B, H, N, HEAD_DIM), by atomic additions in no fixed order. This is faster
// than a separate pass over queries, but the bits vary from run to run. attention_atomic.h must then precede
// this file.

#ifndef WITH_Q
#define WITH_Q 0
#endif
constexpr int SLICES = WITH_K && WITH_V ? 1 : (WITH_K ? D : DV) / SLICE;  // both at once: never sliced
constexpr int OUT_K = !WITH_K ? P::NT : WITH_V ? D / 8 : SLICE / 8;
constexpr int OUT_V = !WITH_V ? P::NT : WITH_K ? DV / 8 : SLICE / 8;
constexpr int K_BYTES = QueryTile::size(OWN), V_BYTES = ValueTile::size(OWN);
constexpr int Q_BYTES = QueryTile::size(SPAN), O_BYTES = ValueTile::size(SPAN),
              ROW_BYTES = SPAN * int(sizeof(Real));
constexpr int STAGE_BYTES = Q_BYTES + O_BYTES + (2 * ROW_BYTES + 127) / 128 * 128;

struct QueryStep {
  int head;
  Step tile;
};

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    attention_backward_kv(const Storage* q, const Storage* k, const Storage* v, const Storage* o_bar,
                          const Real* base, const Real* delta, Storage* k_bar, Storage* v_bar,
                          Real* column_sums, float* q_sum, int heads, int groups, int N, int M, Real scale,
                          ScoreArgs args) {
  DYNAMIC_SHARED(shared);
  const smem_t k_tile = smem_address(shared), v_tile = k_tile + K_BYTES, stages = v_tile + V_BYTES;
  const int slice = int(blockIdx.x) % SLICES, group = int(blockIdx.y), b = int(blockIdx.z);
  const int k0 = int(blockIdx.x) / SLICES * OWN;  // with a causal mask the first keys have the most queries
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const int own0 = k0 + warp * 16 * MT, per_group = heads / groups, first_head = group * per_group;
  const Sizes sizes{heads, groups, N, M};
  const Scale c = make_scale(scale);
  const size_t key_row = (size_t(b) * groups + group) * M;

  // The loop: query tiles of the first head of the group, then of the next head.
  auto step_from = [&](int h, int index) -> QueryStep {
    for (; h < first_head + per_group; ++h, index = 0) {
      ScoreHead head = score_head(args, b, h);
      int low = 0, high = N;
      score_q_range(args, head, b, h, k0, smallest(k0 + OWN, M), low, high);
      for (index = largest(index, largest(low, 0) / SPAN); index * SPAN < high; ++index) {
        int kind = tile_kind(args, head, sizes, b, h, index * SPAN, (index + 1) * SPAN, k0, k0 + OWN);
        if (kind != TILE_EMPTY) return {h, make_step(index, kind)};
      }
    }
    return {-1, end_of_walk()};
  };
  auto load = [&](const QueryStep& step, int stage) {
    smem_t at = stages + smem_t(stage * STAGE_BYTES);
    size_t row = (size_t(b) * heads + step.head) * N;
    int q0 = step.tile.index() * SPAN;
    load_tile<E, D, SPAN, THREADS>(at, q + row * HEAD_DIM, q0, N, HEAD_DIM, HEAD_DIM);
    load_tile<E, DV, SPAN, THREADS>(at + Q_BYTES, o_bar + row * VALUE_DIM, q0, N, VALUE_DIM, VALUE_DIM);
    for (int i = int(threadIdx.x); i < 2 * SPAN; i += THREADS) {
      const Real* from = i < SPAN ? base : delta;
      int query = q0 + i % SPAN;
      cp_async<int(sizeof(Real))>(at + Q_BYTES + O_BYTES + smem_t(i * int(sizeof(Real))),
                                  from + (query < N ? row + query : 0), query < N);
    }
    cp_async_commit();
  };

  ScoreHead head;
  ScoreColumn columns[MT][2];
  Real sums[MT][2][AT_LEAST_ONE(SCORE_COLUMNS)];
  auto begin_head = [&](int h) {
    head = score_head(args, b, h);
#pragma unroll
    for (int m = 0; m < MT; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        columns[m][half] = score_column(args, head, b, h, smallest(own0 + 16 * m + 8 * half + g, M - 1));
#pragma unroll
        for (int j = 0; j < SCORE_COLUMNS; ++j) sums[m][half][j] = 0;
      }
  };
  auto end_head = [&](int h) {
#pragma unroll
    for (int m = 0; m < MT; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int j = 0; j < SCORE_COLUMNS; ++j) {
          Real sum = quad_sum(sums[m][half][j]);
          int at = own0 + 16 * m + 8 * half + g;
          if (WITH_K && slice == 0 && t == 0 && at < M)
            column_sums[((size_t(j) * gridDim.z + b) * heads + h) * M + at] = sum;
        }
  };
  // x := pᵀ, y := s̄ᵀ, and the parameters' sums of one tile; `lines` holds base and Δ of its queries.
  auto cotangents = [&](auto masked, Real(&x)[MT][BLOCKS][4], Real(&y)[MT][BLOCKS][4], smem_t lines, int h,
                        int q0) {
    constexpr bool MASKED = decltype(masked)::value;
#pragma unroll
    for (int n = 0; n < BLOCKS; ++n) {
      smem_t line = lines + smem_t((8 * n + 2 * t) * int(sizeof(Real)));
      const RealPair line_base = load_shared<RealPair>(line),
                     line_delta = load_shared<RealPair>(line + ROW_BYTES);
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        int query = q0 + 8 * n + 2 * t + e, qc = MASKED ? smallest(query, N - 1) : query;
        ScoreRow row = score_row(args, head, b, h, qc);
#pragma unroll
        for (int m = 0; m < MT; ++m)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            int key = own0 + 16 * m + 8 * half + g, kc = MASKED ? smallest(key, M - 1) : key,
                a = 2 * half + e;
            ScorePair at{args, head, row, columns[m][half], b, h, qc, kc};
            ScoreGrad grad;
            Real t_bar =
                pair_cotangents<MASKED>(x[m][n][a], y[m][n][a], e ? line_base.y : line_base.x,
                                        e ? line_delta.y : line_delta.x, key < M && query < N, c, at, grad);
#pragma unroll
            for (int j = 0; j < SCORE_COLUMNS; ++j)
              sums[m][half][j] += parameter_cotangent(t_bar, grad.column[j]);
          }
      }
    }
  };

  const int warp_row = warp * 16 * MT, slice_byte = slice * SLICE * int(sizeof(Storage));
  const smem_t lane_k = k_tile + smem_t(P::lane_a<D>(lane) + warp_row * QueryTile::PITCH);
  const smem_t lane_v = v_tile + smem_t(P::lane_a<DV>(lane) + warp_row * ValueTile::PITCH);
  const smem_t lane_q = stages + smem_t(P::lane_b<D>(lane)),
               lane_o = stages + smem_t(Q_BYTES + P::lane_b<DV>(lane));
  const smem_t lane_qt = QueryTile::move(stages + smem_t(P::lane_bt<D>(lane)), 0, slice_byte);
  const smem_t lane_ot = ValueTile::move(stages + smem_t(Q_BYTES + P::lane_bt<DV>(lane)), 0, slice_byte);
  Real out_k[MT][OUT_K][4], out_v[MT][OUT_V][4];
#pragma unroll
  for (int m = 0; m < MT; ++m) {
    clear(out_k[m]);
    clear(out_v[m]);
  }

  QueryStep step = step_from(first_head, 0);
  if (step.head >= 0) {
    load_tile<E, D, OWN, THREADS>(k_tile, k + key_row * HEAD_DIM, k0, M, HEAD_DIM, HEAD_DIM);
    load_tile<E, DV, OWN, THREADS>(v_tile, v + key_row * VALUE_DIM, k0, M, VALUE_DIM, VALUE_DIM);
    load(step, 0);
  }
  int current = first_head, turn = 0;
  begin_head(current);
  for (int stage = 0; step.head >= 0; stage = STAGES == 2 ? stage ^ 1 : 0) {
    cp_async_wait<0>();
    block_sync();
    QueryStep next;
    if (STAGES == 2) {
      next = step_from(step.head, step.tile.index() + 1);
      if (next.head >= 0) load(next, stage ^ 1);
    }
    for (; current < step.head; begin_head(++current)) end_head(current);

    const smem_t offset = smem_t(stage * STAGE_BYTES);
#pragma unroll 1
    for (int part = 0; part < SPAN; part += PART) {
      const smem_t q_down = offset + smem_t(part * QueryTile::PITCH),
                   o_down = offset + smem_t(part * ValueTile::PITCH);
      const smem_t lines = stages + offset + smem_t(Q_BYTES + O_BYTES + part * int(sizeof(Real)));
      Real x[MT][BLOCKS][4], y[MT][BLOCKS][4];
#pragma unroll
      for (int m = 0; m < MT; ++m) {
        clear(x[m]);
        clear(y[m]);
      }
      product_abt<E, D>(x, lane_k, lane_q + q_down);
      if (WITH_K) product_abt<E, DV>(y, lane_v, lane_o + o_down);
      if (step.tile.kind() == TILE_FULL)
        cotangents(Constant<bool, false>(), x, y, lines, step.head, step.tile.index() * SPAN + part);
      else
        cotangents(Constant<bool, true>(), x, y, lines, step.head, step.tile.index() * SPAN + part);
#if WITH_Q  // two buffers alternate: the barrier of the next part also frees this one
      const smem_t weights = stages + smem_t(STAGES * STAGE_BYTES + (turn ^= 1) * WEIGHT_BYTES);
#pragma unroll
      for (int n = 0; n < BLOCKS; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          store_shared(weights + smem_t(WeightTile::offset(warp_row + 8 * half + g, 16 * n + 4 * t)),
                       pack<E>(y[0][n][2 * half], y[0][n][2 * half + 1]));
#endif
      if (WITH_V) product_wb<E, DV>(out_v, x, lane_ot + o_down);
      if (WITH_K) product_wb<E, D>(out_k, y, lane_qt + q_down);
#if WITH_Q
      block_sync();
      const int q0 = step.tile.index() * SPAN + part;
      add_to_queries(q_sum + ((size_t(b) * heads + step.head) * N + q0) * HEAD_DIM, weights, k_tile, N - q0,
                     scale);
#endif
    }
    if (STAGES == 1) {
      next = step_from(step.head, step.tile.index() + 1);
      block_sync();
      if (next.head >= 0) load(next, 0);
    }
    step = next;
  }
  for (end_head(current); current + 1 < first_head + per_group; end_head(current)) begin_head(++current);

  Real factor_k[MT][2], factor_v[MT][2];
#pragma unroll
  for (int m = 0; m < MT; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      factor_k[m][half] = scale;
      factor_v[m][half] = 1;
    }
  if (WITH_K) store_rows<E>(k_bar + key_row * HEAD_DIM, out_k, own0, M, slice * SLICE, HEAD_DIM, factor_k);
  if (WITH_V) store_rows<E>(v_bar + key_row * VALUE_DIM, out_v, own0, M, slice * SLICE, VALUE_DIM, factor_v);
}
