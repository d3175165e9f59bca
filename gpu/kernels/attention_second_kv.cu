// k̄̇ = scale (s̄̇ᵀ q + s̄ᵀ q̇) and v̄̇ = ṗᵀ ō + pᵀ ō̇ (WITH_K, WITH_V), by the owner of the keys, on transposed scores.
// grid (key tiles × slices, key heads, batch); SLICE columns of k̄̇ or v̄̇ each if only one of them is computed.

constexpr int SLICES = WITH_K && WITH_V ? 1 : (WITH_K ? D : DV) / SLICE;
constexpr int OUT_K = !WITH_K ? P::NT : WITH_V ? D / 8 : SLICE / 8;
constexpr int OUT_V = !WITH_V ? P::NT : WITH_K ? DV / 8 : SLICE / 8;
constexpr int K_BYTES = QueryTile::size(OWN), V_BYTES = ValueTile::size(OWN);
constexpr int Q_BYTES = QueryTile::size(SPAN), O_BYTES = ValueTile::size(SPAN), LINE = SPAN * int(sizeof(Real));

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    attention_second_kv(const Storage* q, const Storage* k, const Storage* v, const Storage* o_bar,
                        const Storage* q_dot, const Storage* k_dot, const Storage* v_dot,
                        const Storage* o_bar_dot, const Real* base, const Real* delta, const Real* lse_dot,
                        const Real* delta_dot, Storage* k_bar_dot, Storage* v_bar_dot, int heads, int groups,
                        int N, int M, Real scale, ScoreArgs args) {
  DYNAMIC_SHARED(shared);
  const smem_t k_tile = smem_address(shared), v_tile = k_tile + 2 * K_BYTES, q_tile = v_tile + 2 * V_BYTES;
  const smem_t o_tile = q_tile + 2 * Q_BYTES, lines = o_tile + 2 * O_BYTES;
  const int slice = int(blockIdx.x) % SLICES, group = int(blockIdx.y), b = int(blockIdx.z);
  const int k0 = int(blockIdx.x) / SLICES * OWN;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const int own0 = k0 + 16 * warp, per_group = heads / groups;
  const Sizes sizes{heads, groups, N, M};
  const size_t key_row = (size_t(b) * groups + group) * M;
  const smem_t lane_k = k_tile + smem_t(P::lane_a<D>(lane) + warp * 16 * QueryTile::PITCH);
  const smem_t lane_v = v_tile + smem_t(P::lane_a<DV>(lane) + warp * 16 * ValueTile::PITCH);
  const smem_t lane_q = q_tile + smem_t(P::lane_b<D>(lane)), lane_o = o_tile + smem_t(P::lane_b<DV>(lane));
  const int slice_byte = slice * SLICE * int(sizeof(Storage));
  const smem_t lane_qt = QueryTile::move(q_tile + smem_t(P::lane_bt<D>(lane)), 0, slice_byte);
  const smem_t lane_ot = ValueTile::move(o_tile + smem_t(P::lane_bt<DV>(lane)), 0, slice_byte);

  Real out_k[1][OUT_K][4], out_v[1][OUT_V][4];
  clear(out_k[0]);
  clear(out_v[0]);
  load_tile<E, D, OWN, THREADS>(k_tile, k + key_row * HEAD_DIM, k0, M, HEAD_DIM, HEAD_DIM);
  load_tile<E, D, OWN, THREADS>(k_tile + K_BYTES, k_dot + key_row * HEAD_DIM, k0, M, HEAD_DIM, HEAD_DIM);
  load_tile<E, DV, OWN, THREADS>(v_tile, v + key_row * VALUE_DIM, k0, M, VALUE_DIM, VALUE_DIM);
  load_tile<E, DV, OWN, THREADS>(v_tile + V_BYTES, v_dot + key_row * VALUE_DIM, k0, M, VALUE_DIM, VALUE_DIM);

  for (int h = group * per_group; h < (group + 1) * per_group; ++h) {
    const ScoreHead head = score_head(args, b, h);
    const size_t row = (size_t(b) * heads + h) * N;
    int key[2];
    ScoreColumn columns[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      key[half] = smallest(own0 + 8 * half + g, M - 1);
      columns[half] = score_column(args, head, b, h, key[half]);
    }
    int low = 0, high = N;
    score_q_range(args, head, b, h, k0, smallest(k0 + OWN, M), low, high);
    for (int q0 = largest(low, 0) / SPAN * SPAN; q0 < high; q0 += SPAN) {
      const int kind = tile_kind(args, head, sizes, b, h, q0, q0 + SPAN, k0, k0 + OWN);
      if (kind == TILE_EMPTY) continue;
      block_sync();
      load_tile<E, D, SPAN, THREADS>(q_tile, q + row * HEAD_DIM, q0, N, HEAD_DIM, HEAD_DIM);
      load_tile<E, D, SPAN, THREADS>(q_tile + Q_BYTES, q_dot + row * HEAD_DIM, q0, N, HEAD_DIM, HEAD_DIM);
      load_tile<E, DV, SPAN, THREADS>(o_tile, o_bar + row * VALUE_DIM, q0, N, VALUE_DIM, VALUE_DIM);
      load_tile<E, DV, SPAN, THREADS>(o_tile + O_BYTES, o_bar_dot + row * VALUE_DIM, q0, N, VALUE_DIM, VALUE_DIM);
      for (int i = int(threadIdx.x); i < 4 * SPAN; i += THREADS) {
        const Real* from = i < SPAN ? base : i < 2 * SPAN ? delta : i < 3 * SPAN ? lse_dot : delta_dot;
        const int query = q0 + i % SPAN;
        cp_async<int(sizeof(Real))>(lines + smem_t(i * int(sizeof(Real))), from + (query < N ? row + query : 0),
                                    query < N);
      }
      cp_async_commit();
      cp_async_wait<0>();
      block_sync();

#pragma unroll 1
      for (int part = 0; part < SPAN; part += PART) {
        const smem_t down = smem_t(part * QueryTile::PITCH), o_down = smem_t(part * ValueTile::PITCH);
        Real x[1][BLOCKS][4], x_dot[1][BLOCKS][4], w[1][BLOCKS][4], w_dot[1][BLOCKS][4];
        clear(x[0]);
        clear(x_dot[0]);
        clear(w[0]);
        clear(w_dot[0]);
        product_abt<E, D>(x, lane_k, lane_q + down);
        product_abt<E, D>(x_dot, lane_k + K_BYTES, lane_q + down);
        product_abt<E, D>(x_dot, lane_k, lane_q + Q_BYTES + down);
        if (WITH_K) {
          product_abt<E, DV>(w, lane_v, lane_o + o_down);
          product_abt<E, DV>(w_dot, lane_v + V_BYTES, lane_o + o_down);
          product_abt<E, DV>(w_dot, lane_v, lane_o + O_BYTES + o_down);
        }
#pragma unroll
        for (int n = 0; n < BLOCKS; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int i = part + 8 * n + 2 * t + e, query = q0 + i, qc = smallest(query, N - 1);
            const smem_t line = lines + smem_t(i * int(sizeof(Real)));
            const RowSecond known = {load_shared<Real>(line), load_shared<Real>(line + LINE),
                                     load_shared<Real>(line + 2 * LINE), load_shared<Real>(line + 3 * LINE)};
            const ScoreRow score = score_row(args, head, b, h, qc);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              const int a = 2 * half + e;
              const ScorePair at{args, head, score, columns[half], b, h, qc, key[half]};
              const bool seen = kind == TILE_FULL || (query < N && own0 + 8 * half + g < M && mask_mod(at));
              const PairSecond pair = second_cotangents(x[0][n][a], x_dot[0][n][a], w[0][n][a], w_dot[0][n][a],
                                                        known, seen, scale, at);
              x[0][n][a] = pair.p;
              x_dot[0][n][a] = pair.p_dot;
              w[0][n][a] = pair.s_bar;
              w_dot[0][n][a] = pair.s_bar_dot;
            }
          }
        if (WITH_V) {
          product_wb<E, DV>(out_v, x_dot, lane_ot + o_down);
          product_wb<E, DV>(out_v, x, lane_ot + O_BYTES + o_down);
        }
        if (WITH_K) {
          product_wb<E, D>(out_k, w_dot, lane_qt + down);
          product_wb<E, D>(out_k, w, lane_qt + Q_BYTES + down);
        }
      }
    }
  }
  Real factor_k[1][2] = {{scale, scale}}, factor_v[1][2] = {{1, 1}};
  if (WITH_K)
    store_rows<E>(k_bar_dot + key_row * HEAD_DIM, out_k, own0, M, slice * SLICE, HEAD_DIM, factor_k);
  if (WITH_V)
    store_rows<E>(v_bar_dot + key_row * VALUE_DIM, out_v, own0, M, slice * SLICE, VALUE_DIM, factor_v);
}
