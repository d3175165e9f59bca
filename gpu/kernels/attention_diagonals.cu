// Sums of the parameters' cotangents t̄ ∂t/∂θ along the diagonals q - k, for tables of relative positions.
//
// A block owns BAND diagonals and moves down along them. At every step each of its warps holds 16 queries and the
// PART keys that these diagonals cross there, so that an element's diagonal depends only on its place in the
// fragment. Every lane therefore adds to the same few registers throughout, and these are summed once at the end.
//
// grid (bands, heads, batch); result (SCORE_DIAGONALS, B, H, N + M - 1), entry q - k + M - 1.

constexpr int BAND = PART - 16, KEYS = OWN - 16 + PART, BINS = BLOCKS + 1;
constexpr int Q_BYTES = QueryTile::size(OWN), O_BYTES = ValueTile::size(OWN), K_BYTES = QueryTile::size(KEYS);

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    attention_diagonals(const Storage* q, const Storage* k, const Storage* v, const Storage* o_bar,
                        const Real* base, const Real* delta, Real* sums, int heads, int groups, int N, int M,
                        Real scale, ScoreArgs args) {
  DYNAMIC_SHARED(shared);
  const smem_t q_tile = smem_address(shared), o_tile = q_tile + Q_BYTES, k_tile = o_tile + O_BYTES;
  const smem_t v_tile = k_tile + K_BYTES;
  const int h = int(blockIdx.y), b = int(blockIdx.z), first = int(blockIdx.x) * BAND - (M - 1);
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const Scale c = make_scale(scale);
  const ScoreHead head = score_head(args, b, h);
  const size_t row = (size_t(b) * heads + h) * N, key_row = (size_t(b) * groups + h / (heads / groups)) * M;
  const smem_t lane_q = q_tile + smem_t(P::lane_a<D>(lane) + warp * 16 * QueryTile::PITCH);
  const smem_t lane_o = o_tile + smem_t(P::lane_a<DV>(lane) + warp * 16 * ValueTile::PITCH);
  const smem_t lane_k = k_tile + smem_t(P::lane_b<D>(lane) + warp * 16 * QueryTile::PITCH);
  const smem_t lane_v = v_tile + smem_t(P::lane_b<DV>(lane) + warp * 16 * ValueTile::PITCH);

  Real bins[AT_LEAST_ONE(SCORE_DIAGONALS)][2]
           [BINS];  // of columns 2t + e, by 8-row block minus 8-column block
#pragma unroll
  for (int j = 0; j < SCORE_DIAGONALS; ++j)
#pragma unroll
    for (int e = 0; e < 2; ++e)
#pragma unroll
      for (int i = 0; i < BINS; ++i) bins[j][e][i] = 0;

  for (int q0 = 0; q0 < N; q0 += OWN) {
    const int k0 = q0 - first - BAND + 1;  // key of column 0 of warp 0
    const int q1 = smallest(q0 + OWN, N), low = largest(k0, 0), high = smallest(k0 + KEYS, M);
    if (low >= high || score_tile(args, head, b, h, q0, q1, low, high) == TILE_EMPTY) continue;
    block_sync();
    load_tile<E, D, OWN, THREADS>(q_tile, q + row * HEAD_DIM, q0, N, HEAD_DIM, HEAD_DIM);
    load_tile<E, DV, OWN, THREADS>(o_tile, o_bar + row * VALUE_DIM, q0, N, VALUE_DIM, VALUE_DIM);
    load_tile<E, D, KEYS, THREADS>(k_tile, k + key_row * HEAD_DIM, k0, M, HEAD_DIM, HEAD_DIM);
    load_tile<E, DV, KEYS, THREADS>(v_tile, v + key_row * VALUE_DIM, k0, M, VALUE_DIM, VALUE_DIM);
    cp_async_commit();
    cp_async_wait<0>();
    block_sync();

    Real x[1][BLOCKS][4], y[1][BLOCKS][4];
    clear(x[0]);
    clear(y[0]);
    product_abt<E, D>(x, lane_q, lane_k);
    product_abt<E, DV>(y, lane_o, lane_v);
    int query[2];
    bool inside_q[2];
    Real row_base[2], row_delta[2];
    ScoreRow rows[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int at = q0 + 16 * warp + 8 * half + g;
      inside_q[half] = at < N;
      query[half] = smallest(at, N - 1);
      row_base[half] = base[row + query[half]];
      row_delta[half] = delta[row + query[half]];
      rows[half] = score_row(args, head, b, h, query[half]);
    }
#pragma unroll
    for (int n = 0; n < BLOCKS; ++n)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int across = 8 * n + 2 * t + e, key = k0 + 16 * warp + across,
                  kc = smallest(largest(key, 0), M - 1);
        const ScoreColumn column = score_column(args, head, b, h, kc);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int place = BAND - 1 + 8 * half + g - across;  // in the band
          const bool inside = inside_q[half] && key == kc && place >= 0 && place < BAND;
          const ScorePair at{args, head, rows[half], column, b, h, query[half], kc};
          ScoreGrad grad;
          Real t_bar = pair_cotangents<true>(x[0][n][2 * half + e], y[0][n][2 * half + e], row_base[half],
                                             row_delta[half], inside, c, at, grad);
#pragma unroll
          for (int j = 0; j < SCORE_DIAGONALS; ++j)
            bins[j][e][half - n + BLOCKS - 1] += parameter_cotangent(t_bar, grad.diagonal[j]);
        }
      }
  }

  // For each place of the band: add the bins that belong to it, warp by warp, row by row of the fragment.
  const smem_t table = smem_address(shared);
#pragma unroll
  for (int j = 0; j < SCORE_DIAGONALS; ++j) {
    block_sync();
#pragma unroll
    for (int e = 0; e < 2; ++e)
#pragma unroll
      for (int i = 0; i < BINS; ++i)
        store_shared(table + smem_t(((e * BINS + i) * THREADS + int(threadIdx.x)) * int(sizeof(Real))),
                     bins[j][e][i]);
    block_sync();
    for (int place = int(threadIdx.x); place < BAND; place += THREADS) {
      Real sum = 0;
      for (int w = 0; w < WARPS; ++w)
        for (int l = 0; l < 32; ++l)
          for (int e = 0; e < 2; ++e) {
            int rest = place - (BAND - 1 + l / 4 - 2 * (l % 4) - e);  // 8 (half - n) for this lane
            int i = rest / 8 + BLOCKS - 1;
            if (rest % 8 == 0 && i >= 0 && i < BINS)
              sum += load_shared<Real>(table +
                                       smem_t(((e * BINS + i) * THREADS + 32 * w + l) * int(sizeof(Real))));
          }
      int at = first + place + M - 1;
      if (at < N + M - 1) sums[((size_t(j) * gridDim.z + b) * heads + h) * size_t(N + M - 1) + at] = sum;
    }
  }
}
