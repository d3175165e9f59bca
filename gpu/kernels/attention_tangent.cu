// Tangents of attention along (q̇, k̇, v̇), parameters held fixed: with ṡ = scale (q̇ kᵀ + q k̇ᵀ) and
// ṫ = f'(s) ∘ ṡ, L̇ = Σ p ∘ ṫ and ȯ = (p ∘ ṫ) v + p v̇ - L̇ o, in one pass over the keys since L is known.
//
// grid (query tiles × value slices, heads, batch), block THREADS; SLICE columns of v each.

typedef Tile<E, D> QueryTile;
typedef Tile<E, SLICE> SliceTile;
constexpr int SLICES = DV / SLICE, OUT = SLICE / 8;
constexpr int Q_BYTES = QueryTile::size(OWN), K_BYTES = QueryTile::size(SPAN), V_BYTES = SliceTile::size(SPAN);

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    attention_tangent(const Storage* q, const Storage* k, const Storage* v, const Storage* o, const Real* lse,
                      const Storage* q_dot, const Storage* k_dot, const Storage* v_dot, Storage* o_dot,
                      Real* lse_dot, int heads, int groups, int N, int M, Real scale, ScoreArgs args) {
  DYNAMIC_SHARED(shared);
  const smem_t q_tile = smem_address(shared), k_tile = q_tile + 2 * Q_BYTES, v_tile = k_tile + 2 * K_BYTES;
  const int slice = int(blockIdx.x) % SLICES, h = int(blockIdx.y), b = int(blockIdx.z);
  const int q0 = (int(gridDim.x) / SLICES - 1 - int(blockIdx.x) / SLICES) * OWN;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const int own0 = q0 + 16 * warp;
  const Sizes sizes{heads, groups, N, M};
  const size_t row = (size_t(b) * heads + h) * N;
  const size_t key_row = (size_t(b) * groups + h / (heads / groups)) * M;
  const ScoreHead head = score_head(args, b, h);
  const smem_t lane_q = q_tile + smem_t(P::lane_a<D>(lane) + warp * 16 * QueryTile::PITCH);
  const smem_t lane_k = k_tile + smem_t(P::lane_b<D>(lane)), lane_v = v_tile + smem_t(P::lane_bt<SLICE>(lane));

  int query[2];
  Real base[2], sum[2] = {0, 0};
  ScoreRow rows[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    query[half] = smallest(own0 + 8 * half + g, N - 1);
    Real total = lse[row + query[half]];
    base[half] = total == -infinity(Real()) ? infinity(Real()) : total * LOG2E;
    rows[half] = score_row(args, head, b, h, query[half]);
  }
  Real out[1][OUT][4];
  clear(out[0]);
  load_tile<E, D, OWN, THREADS>(q_tile, q + row * HEAD_DIM, q0, N, HEAD_DIM, HEAD_DIM);
  load_tile<E, D, OWN, THREADS>(q_tile + Q_BYTES, q_dot + row * HEAD_DIM, q0, N, HEAD_DIM, HEAD_DIM);

  int low = 0, high = M;
  score_k_range(args, head, b, h, q0, smallest(q0 + OWN, N), low, high);
  for (int k0 = largest(low, 0) / SPAN * SPAN; k0 < high; k0 += SPAN) {
    const int kind = tile_kind(args, head, sizes, b, h, q0, q0 + OWN, k0, k0 + SPAN);
    if (kind == TILE_EMPTY) continue;
    block_sync();
    load_tile<E, D, SPAN, THREADS>(k_tile, k + key_row * HEAD_DIM, k0, M, HEAD_DIM, HEAD_DIM);
    load_tile<E, D, SPAN, THREADS>(k_tile + K_BYTES, k_dot + key_row * HEAD_DIM, k0, M, HEAD_DIM, HEAD_DIM);
    const size_t column0 = key_row * VALUE_DIM + slice * SLICE;
    const int width = VALUE_DIM - slice * SLICE;
    load_tile<E, SLICE, SPAN, THREADS>(v_tile, v + column0, k0, M, VALUE_DIM, width);
    load_tile<E, SLICE, SPAN, THREADS>(v_tile + V_BYTES, v_dot + column0, k0, M, VALUE_DIM, width);
    cp_async_commit();
    cp_async_wait<0>();
    block_sync();

#pragma unroll 1
    for (int part = 0; part < SPAN; part += PART) {
      const smem_t down = smem_t(part * QueryTile::PITCH), v_down = smem_t(part * SliceTile::PITCH);
      Real x[1][BLOCKS][4], x_dot[1][BLOCKS][4];
      clear(x[0]);
      clear(x_dot[0]);
      product_abt<E, D>(x, lane_q, lane_k + down);
      product_abt<E, D>(x_dot, lane_q + Q_BYTES, lane_k + down);
      product_abt<E, D>(x_dot, lane_q, lane_k + K_BYTES + down);
#pragma unroll
      for (int n = 0; n < BLOCKS; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int key = k0 + part + 8 * n + 2 * t + e, kc = smallest(key, M - 1);
          const ScoreColumn column = score_column(args, head, b, h, kc);
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const ScorePair at{args, head, rows[half], column, b, h, query[half], kc};
            const bool seen = kind == TILE_FULL || (key < M && mask_mod(at));
            Real &p = x[0][n][2 * half + e], &weight = x_dot[0][n][2 * half + e], slope = 1;
            const Real s_dot = weight * scale;
#if SCORE_PLAIN
            const Real value = p * scale;
#else
            ScoreGrad grad;
            score_grad(p * scale, at, grad);
            const Real value = grad.t;
            slope = grad.ds;
#endif
            p = seen ? exp2_fast(value * LOG2E - base[half]) : Real(0);
            weight = seen ? p * slope * s_dot : Real(0);
            sum[half] += weight;
          }
        }
      product_wb<E, SLICE>(out, x_dot, lane_v + v_down);
      product_wb<E, SLICE>(out, x, lane_v + V_BYTES + v_down);
    }
  }

  Real one[1][2] = {{1, 1}}, minus[1][2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Real total = quad_sum(sum[half]);
    minus[0][half] = -total;
    const int at = own0 + 8 * half + g;
    if (slice == 0 && t == 0 && at < N) lse_dot[row + at] = total;
  }
  add_rows<E>(out, o + row * VALUE_DIM, own0, N, slice * SLICE, VALUE_DIM, minus);
  store_rows<E>(o_dot + row * VALUE_DIM, out, own0, N, slice * SLICE, VALUE_DIM, one);
}
