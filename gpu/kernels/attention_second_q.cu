// q̄̇ = scale (s̄̇ k + s̄ k̇), by the owner of the queries.
// grid (query tiles × slices, heads, batch); each slice of SLICE columns computes the scores again.

constexpr int SLICES = D / SLICE, OUT = SLICE / 8;
constexpr int Q_BYTES = QueryTile::size(OWN), O_BYTES = ValueTile::size(OWN);
constexpr int K_BYTES = QueryTile::size(SPAN), V_BYTES = ValueTile::size(SPAN);

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    attention_second_q(const Storage* q, const Storage* k, const Storage* v, const Storage* o_bar,
                       const Storage* q_dot, const Storage* k_dot, const Storage* v_dot,
                       const Storage* o_bar_dot, const Real* base, const Real* delta, const Real* lse_dot,
                       const Real* delta_dot, Storage* q_bar_dot, int heads, int groups, int N, int M,
                       Real scale, ScoreArgs args) {
  DYNAMIC_SHARED(shared);
  const smem_t q_tile = smem_address(shared), o_tile = q_tile + 2 * Q_BYTES, k_tile = o_tile + 2 * O_BYTES;
  const smem_t v_tile = k_tile + 2 * K_BYTES;
  const int slice = int(blockIdx.x) % SLICES, h = int(blockIdx.y), b = int(blockIdx.z);
  const int q0 = (int(gridDim.x) / SLICES - 1 - int(blockIdx.x) / SLICES) * OWN;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const int own0 = q0 + 16 * warp;
  const Sizes sizes{heads, groups, N, M};
  const size_t row = (size_t(b) * heads + h) * N;
  const size_t key_row = (size_t(b) * groups + h / (heads / groups)) * M;
  const ScoreHead head = score_head(args, b, h);
  const smem_t lane_q = q_tile + smem_t(P::lane_a<D>(lane) + warp * 16 * QueryTile::PITCH);
  const smem_t lane_o = o_tile + smem_t(P::lane_a<DV>(lane) + warp * 16 * ValueTile::PITCH);
  const smem_t lane_k = k_tile + smem_t(P::lane_b<D>(lane)), lane_v = v_tile + smem_t(P::lane_b<DV>(lane));
  const smem_t lane_kt =
      QueryTile::move(k_tile + smem_t(P::lane_bt<D>(lane)), 0, slice * SLICE * int(sizeof(Storage)));

  ScoreRow rows[2];
  RowSecond known[2];
  int query[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    query[half] = smallest(own0 + 8 * half + g, N - 1);
    rows[half] = score_row(args, head, b, h, query[half]);
    const size_t at = row + query[half];
    known[half] = {base[at], delta[at], lse_dot[at], delta_dot[at]};
  }
  Real out[1][OUT][4];
  clear(out[0]);
  load_tile<E, D, OWN, THREADS>(q_tile, q + row * HEAD_DIM, q0, N, HEAD_DIM, HEAD_DIM);
  load_tile<E, D, OWN, THREADS>(q_tile + Q_BYTES, q_dot + row * HEAD_DIM, q0, N, HEAD_DIM, HEAD_DIM);
  load_tile<E, DV, OWN, THREADS>(o_tile, o_bar + row * VALUE_DIM, q0, N, VALUE_DIM, VALUE_DIM);
  load_tile<E, DV, OWN, THREADS>(o_tile + O_BYTES, o_bar_dot + row * VALUE_DIM, q0, N, VALUE_DIM, VALUE_DIM);

  int low = 0, high = M;
  score_k_range(args, head, b, h, q0, smallest(q0 + OWN, N), low, high);
  for (int k0 = largest(low, 0) / SPAN * SPAN; k0 < high; k0 += SPAN) {
    const int kind = tile_kind(args, head, sizes, b, h, q0, q0 + OWN, k0, k0 + SPAN);
    if (kind == TILE_EMPTY) continue;
    block_sync();
    load_tile<E, D, SPAN, THREADS>(k_tile, k + key_row * HEAD_DIM, k0, M, HEAD_DIM, HEAD_DIM);
    load_tile<E, D, SPAN, THREADS>(k_tile + K_BYTES, k_dot + key_row * HEAD_DIM, k0, M, HEAD_DIM, HEAD_DIM);
    load_tile<E, DV, SPAN, THREADS>(v_tile, v + key_row * VALUE_DIM, k0, M, VALUE_DIM, VALUE_DIM);
    load_tile<E, DV, SPAN, THREADS>(v_tile + V_BYTES, v_dot + key_row * VALUE_DIM, k0, M, VALUE_DIM, VALUE_DIM);
    cp_async_commit();
    cp_async_wait<0>();
    block_sync();

#pragma unroll 1
    for (int part = 0; part < SPAN; part += PART) {
      const smem_t down = smem_t(part * QueryTile::PITCH), v_down = smem_t(part * ValueTile::PITCH);
      Real x[1][BLOCKS][4], x_dot[1][BLOCKS][4], w[1][BLOCKS][4], w_dot[1][BLOCKS][4];
      clear(x[0]);
      clear(x_dot[0]);
      clear(w[0]);
      clear(w_dot[0]);
      product_abt<E, D>(x, lane_q, lane_k + down);
      product_abt<E, D>(x_dot, lane_q + Q_BYTES, lane_k + down);
      product_abt<E, D>(x_dot, lane_q, lane_k + K_BYTES + down);
      product_abt<E, DV>(w, lane_o, lane_v + v_down);
      product_abt<E, DV>(w_dot, lane_o + O_BYTES, lane_v + v_down);
      product_abt<E, DV>(w_dot, lane_o, lane_v + V_BYTES + v_down);
#pragma unroll
      for (int n = 0; n < BLOCKS; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int key = k0 + part + 8 * n + 2 * t + e, kc = smallest(key, M - 1);
          const ScoreColumn column = score_column(args, head, b, h, kc);
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int i = 2 * half + e;
            const ScorePair at{args, head, rows[half], column, b, h, query[half], kc};
            const bool seen = kind == TILE_FULL || (key < M && mask_mod(at));
            const PairSecond pair = second_cotangents(x[0][n][i], x_dot[0][n][i], w[0][n][i], w_dot[0][n][i],
                                                      known[half], seen, scale, at);
            x[0][n][i] = pair.s_bar_dot;
            w[0][n][i] = pair.s_bar;
          }
        }
      product_wb<E, D>(out, x, lane_kt + down);
      product_wb<E, D>(out, w, lane_kt + K_BYTES + down);
    }
  }
  Real factor[1][2] = {{scale, scale}};
  store_rows<E>(q_bar_dot + row * HEAD_DIM, out, own0, N, slice * SLICE, HEAD_DIM, factor);
}
