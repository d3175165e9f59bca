// q̄ by atomic additions in the pass over keys; for 16-bit elements.
#define WITH_Q 1

typedef Tile<E, PART> WeightTile;  // s̄ᵀ of a block, for the product with keys of other warps
constexpr int WEIGHT_BYTES = WeightTile::size(OWN);

// q_sum[rows of 16 queries][columns] += scale s̄ k for the queries of one part, which are divided among the warps.
DEVICE void add_to_queries(float* q_sum, smem_t weights, smem_t keys, int rows, Real scale) {
  constexpr int ROW_BLOCKS = PART / 16, COLUMN_GROUPS = WARPS / ROW_BLOCKS, COLUMNS = D / COLUMN_GROUPS;
  static_assert(COLUMN_GROUPS == 1 || COLUMNS == 16 || COLUMNS == 32 || COLUMNS == 64, "warps share a tile of queries evenly");
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const int row0 = warp % ROW_BLOCKS * 16, column0 = warp / ROW_BLOCKS * COLUMNS;
  const smem_t lane_w = WeightTile::move(weights + smem_t(P::lane_at<PART>(lane)), 0, row0 * 2);
  const smem_t lane_kt = QueryTile::move(keys + smem_t(P::lane_bt<D>(lane)), 0, column0 * 2);
  Real out[COLUMNS / 8][4];
  clear(out);
#pragma unroll
  for (int k = 0; k < OWN; k += 16) {
    P::A a = P::load_at<PART>(lane_w, k, 0);
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n += 2) {
      P::B columns[2];
      P::load_bt<D>(columns, lane_kt, k, 8 * n);
      P::multiply(out[n], a, columns[0]);
      P::multiply(out[n + 1], a, columns[1]);
    }
  }
#pragma unroll
  for (int n = 0; n < COLUMNS / 8; ++n)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = row0 + 8 * half + g, column = column0 + 8 * n + 2 * t;
      if (row < rows && column < HEAD_DIM)
        add_global2(q_sum + row * HEAD_DIM + column, out[n][2 * half] * scale, out[n][2 * half + 1] * scale);
    }
}

// grid (ceil(count / (2 THREADS))): converts the sums to the type of the arrays; count is even.
extern "C" __global__ void __launch_bounds__(THREADS)
    attention_round(const float* sums, Storage* to, long long count) {
  const long long at = 2 * ((long long)(blockIdx.x) * THREADS + threadIdx.x);
  if (at < count) *reinterpret_cast<u32*>(to + at) = pack<E>(sums[at], sums[at + 1]);
}
