// Kernel sums of functions of inner products and norms, on tensor cores: <x_i, y_j> for tiles of pairs, then f for
// each pair, and the cotangents of both point sets. pair_sum.cu adds the parts.
//
// With w_ij the cotangent of f_ij (see pair_backward) and e_r = w df/dsigma_r, sigma_r = a_r <x, y> + b_r |x|^2 +
// c_r |y|^2, the cotangents are x_bar_i = sum_j (sum_r a_r e_r) y_j + (sum_j sum_r 2 b_r e_r) x_i, and likewise
// y_bar_j: a matrix product and a sum for each row.
//
// The points are read as numbers of type E (float32 in three tf32 products, or bf16), and norms are those of the
// numbers as read, so that |x|^2 + |y|^2 - 2 <x, y> is |x - y|^2 for two points near the given ones.
//
// This file must follow prims.h, tile.h, matrix.h, product.h and the text of gpu/pairs/kernel_text.py, which defines
// what pair_sum.cu lists, and `typedef Fp32 | Bf16 E`, PRODUCT_COLUMNS (payload columns of a launch), DEPTH (PAIR_D,
// padded) and
//   pair_sigma(s, nx, ny, sigma)          the sums over components, from <x, y>, |x|^2 and |y|^2
//   pair_weights(e, w, cross, own_x, own_y)   w sum_r a_r e_r, w sum_r 2 b_r e_r and w sum_r 2 c_r e_r

typedef E::Storage Storage;
constexpr int ROWS = 64, THREADS = 128;
typedef Tile<E, DEPTH> Points;

DEVICE Real product_exp(Real x) { return exp2f(x * 1.4426950408889634f); }

// A number of a tile.
DEVICE Real component(const char* tile, int row, int k) {
  const int byte = k * int(sizeof(Storage));
  return unpack<E>(*reinterpret_cast<const Storage*>(tile + Points::offset(row, byte & ~15) + (byte & 15)));
}

// Points [first, first + COUNT) as a tile, and their norms squared; zeros outside.
template <int COUNT>
DEVICE void load_points(char* tile, Real* norms, const Real* points, int first, int count) {
  for (int i = int(threadIdx.x); i < COUNT * DEPTH; i += THREADS) {
    const int row = i / DEPTH, k = i % DEPTH, byte = k * int(sizeof(Storage));
    const Real x = first + row < count && k < PAIR_D ? points[(size_t)(first + row) * PAIR_D + k] : Real(0);
    *reinterpret_cast<Storage*>(tile + Points::offset(row, byte & ~15) + (byte & 15)) = rounded<E>(x);
  }
  block_sync();
  for (int row = int(threadIdx.x); row < COUNT; row += THREADS) {
    Real sum = 0;
    for (int k = 0; k < PAIR_D; ++k) {
      const Real x = component(tile, row, k);
      sum += x * x;
    }
    norms[row] = sum;
  }
}

// WIDTH columns from `column0` on of the rows [first, first + COUNT) of a matrix; zeros outside.
template <int COUNT, int WIDTH>
DEVICE void load_rows(Real* to, const Real* from, int first, int count, int column0, int columns) {
  for (int i = int(threadIdx.x); i < COUNT * WIDTH; i += THREADS) {
    const int j = first + i / WIDTH, e = column0 + i % WIDTH;
    to[i] = j < count && e < columns ? from[(size_t)j * columns + e] : Real(0);
  }
}

// The part [begin, end) of the stream that this block processes, in tiles of COUNT.
struct Range { int begin, end; };
template <int COUNT>
DEVICE Range tiles_of_block(int count) {
  const int tiles = (count + COUNT - 1) / COUNT, per = (tiles + int(gridDim.y) - 1) / int(gridDim.y) * COUNT;
  return {int(blockIdx.y) * per, smallest((int(blockIdx.y) + 1) * per, count)};
}

// grid (blocks of 64 rows, parts of the stream, chunks of columns), 128 threads; a warp owns 16 rows.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    pair_products(const Real* x, const Real* y, const Real* b, const Real* params, Real* parts, Real* level_parts,
                  int n, int m, int columns) {
  constexpr int C = PRODUCT_COLUMNS, BLOCKS = ROWS / 8;
  DYNAMIC_SHARED(memory);
  char* other = memory + Points::size(ROWS);
  Real* own_norms = reinterpret_cast<Real*>(other + Points::size(ROWS));
  Real* other_norms = own_norms + ROWS;
  Real* payload = other_norms + ROWS;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const int row0 = int(blockIdx.x) * ROWS, column0 = int(blockIdx.z) * C;
  const smem_t own_at = smem_address(memory) + smem_t(Points::size(16 * warp) + Matrix<E>::template lane_a<DEPTH>(lane));
  const smem_t other_at = smem_address(other) + smem_t(Matrix<E>::template lane_b<DEPTH>(lane));
  Real p[PAIR_ENTRIES];
#pragma unroll
  for (int e = 0; e < PAIR_ENTRIES; ++e) p[e] = params[e];
  load_points<ROWS>(memory, own_norms, x, row0, n);
  Real total[2][C], top[2], mass[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    top[r] = Real(-3e38f), mass[r] = 0;
#pragma unroll
    for (int e = 0; e < C; ++e) total[r][e] = 0;
  }
  const Range part = tiles_of_block<ROWS>(m);
  for (int first = part.begin; first < part.end; first += ROWS) {
    block_sync();
    load_points<ROWS>(other, other_norms, y, first, m);
    load_rows<ROWS, C>(payload, b, first, m, column0, columns);
    block_sync();
    Real s[1][BLOCKS][4];
    clear(s[0]);
    product_abt<E, DEPTH>(s, own_at, other_at);
    Real sums[2][C];
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int e = 0; e < C; ++e) sums[r][e] = 0;
#pragma unroll
    for (int block = 0; block < BLOCKS; ++block)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = i / 2, j = 8 * block + 2 * t + i % 2;
        if (first + j >= m) continue;
        Real sigma[PAIR_SUMS > 0 ? PAIR_SUMS : 1];
        pair_sigma(s[0][block][i], own_norms[16 * warp + g + 8 * r], other_norms[j], sigma);
        Real f = pair_value(sigma, nullptr, nullptr, p);
        if (PAIR_REDUCE) {
          if (f > top[r]) {
            const Real keep = product_exp(top[r] - f);
            top[r] = f, mass[r] *= keep;
#pragma unroll
            for (int e = 0; e < C; ++e) sums[r][e] *= keep, total[r][e] *= keep;
          }
          f = product_exp(f - top[r]);
          mass[r] += f;
        }
#pragma unroll
        for (int e = 0; e < C; ++e) sums[r][e] += f * payload[j * C + e];
      }
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int e = 0; e < C; ++e) total[r][e] += sums[r][e];
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const Real highest = quad_max(top[r]), keep = PAIR_REDUCE ? product_exp(top[r] - highest) : Real(1);
    const Real all = quad_sum(mass[r] * keep);
    const int i = row0 + 16 * warp + g + 8 * r;
    const size_t at = (size_t)blockIdx.y * n + i;
#pragma unroll
    for (int e = 0; e < C; ++e) {
      const Real sum = quad_sum(total[r][e] * keep);
      if (t == 0 && i < n && column0 + e < columns) parts[at * columns + column0 + e] = sum;
    }
    if (PAIR_REDUCE && t == 0 && i < n && blockIdx.z == 0)
      level_parts[at * 2] = highest, level_parts[at * 2 + 1] = all;
  }
}

// The cotangents of the owned points, as pair_backward in pair_sum.cu: rows (COLUMN false) own x, out_bar and stats,
// and also compute the parameters' cotangents; columns own y and b, and compute b_bar.
template <bool COLUMN>
DEVICE void products_backward(char* memory, const Real* own_points, const Real* own_payload, const Real* own_stats,
                              const Real* stream_points, const Real* stream_payload, const Real* stream_stats,
                              const Real* params, Real* point_parts, Real* other_parts, int n, int m, int columns) {
  typedef Matrix<E> P;
  // Points of the stream processed at a time: longer points, and those of 32 bits, need more registers.
  constexpr int C = PRODUCT_COLUMNS, STREAM = (sizeof(Storage) == 4 ? 32 : 64) / (DEPTH > 64 ? 2 : 1), BLOCKS = STREAM / 8, OUT = DEPTH / 8;
  constexpr bool STATS = PAIR_REDUCE != 0;
  char* other = memory + Points::size(ROWS);
  Real* own_norms = reinterpret_cast<Real*>(other + Points::size(ROWS));
  Real* other_norms = own_norms + ROWS;
  Real* payload = other_norms + ROWS;
  Real* stats = payload + ROWS * C;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
  const int row0 = int(blockIdx.x) * ROWS, column0 = int(blockIdx.z) * C;
  Real p[PAIR_ENTRIES], p_total[PAIR_ENTRIES];
#pragma unroll
  for (int e = 0; e < PAIR_ENTRIES; ++e) p[e] = params[e], p_total[e] = 0;
  load_points<ROWS>(memory, own_norms, own_points, row0, n);
  Real out[1][OUT][4], own[2][C], b_total[2][C], own_total[2], level[2], delta[2];
  clear(out[0]);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int i = row0 + 16 * warp + g + 8 * r;
    own_total[r] = 0;
    level[r] = STATS && !COLUMN && i < n ? own_stats[(size_t)i * 2] : Real(0);
    delta[r] = STATS && !COLUMN && i < n ? own_stats[(size_t)i * 2 + 1] : Real(0);
#pragma unroll
    for (int e = 0; e < C; ++e) {
      own[r][e] = i < n && column0 + e < columns ? own_payload[(size_t)i * columns + column0 + e] : Real(0);
      b_total[r][e] = 0;
    }
  }
  const Range part = tiles_of_block<STREAM>(m);
  for (int first = part.begin; first < part.end; first += STREAM) {
    block_sync();
    load_points<STREAM>(other, other_norms, stream_points, first, m);
    load_rows<STREAM, C>(payload, stream_payload, first, m, column0, columns);
    if (COLUMN && STATS) load_rows<STREAM, 2>(stats, stream_stats, first, m, 0, 2);
    block_sync();
    // Computed again for each tile; kept in registers, these would spill.
    const int thread = opaque(int(threadIdx.x)), warp = thread / 32, lane = thread % 32, g = lane / 4, t = lane % 4;
    const smem_t own_at = smem_address(memory) + smem_t(Points::size(16 * warp) + P::template lane_a<DEPTH>(lane));
    const smem_t other_at = smem_address(other) + smem_t(P::template lane_b<DEPTH>(lane));
    Real s[1][BLOCKS][4];
    clear(s[0]);
    product_abt<E, DEPTH>(s, own_at, other_at);
    Real p_bar[PAIR_ENTRIES], own_sum[2], b_bar[2][C];
#pragma unroll
    for (int e = 0; e < PAIR_ENTRIES; ++e) p_bar[e] = 0;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      own_sum[r] = 0;
#pragma unroll
      for (int e = 0; e < C; ++e) b_bar[r][e] = 0;
    }
#pragma unroll
    for (int block = 0; block < BLOCKS; ++block)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = i / 2, j = 8 * block + 2 * t + i % 2, row = 16 * warp + g + 8 * r;
        if (first + j >= m || row0 + row >= n) {
          s[0][block][i] = 0;
          continue;
        }
        Real sigma[PAIR_SUMS > 0 ? PAIR_SUMS : 1], ds[PAIR_SUMS > 0 ? PAIR_SUMS : 1] = {}, dp[PAIR_ENTRIES] = {};
        const Real mine = own_norms[row], theirs = other_norms[j];
        pair_sigma(s[0][block][i], COLUMN ? theirs : mine, COLUMN ? mine : theirs, sigma);
        Real f, w = 0;
        pair_partials(sigma, nullptr, nullptr, p, f, ds, nullptr, nullptr, dp);
#pragma unroll
        for (int e = 0; e < C; ++e) w += own[r][e] * payload[j * C + e];
        if (STATS) {
          f = product_exp(f - (COLUMN ? stats[2 * j] : level[r]));
          // The column chunks of blockIdx.z are summed, so that only one of them subtracts delta.
          w = f * (PAIR_REDUCE == 2 && blockIdx.z == 0 ? w - (COLUMN ? stats[2 * j + 1] : delta[r]) : w);
        }
        Real cross, own_x, own_y;
        pair_weights(ds, w, cross, own_x, own_y);
        s[0][block][i] = cross;
        own_sum[r] += COLUMN ? own_y : own_x;
        if (!COLUMN && PAIR_PARAMETERS)
#pragma unroll
          for (int e = 0; e < PAIR_ENTRIES; ++e) p_bar[e] += w * dp[e];
        if (COLUMN)
#pragma unroll
          for (int e = 0; e < C; ++e) b_bar[r][e] += f * payload[j * C + e];
      }
#pragma unroll
    for (int e = 0; e < PAIR_ENTRIES; ++e) p_total[e] += p_bar[e];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      own_total[r] += own_sum[r];
#pragma unroll
      for (int e = 0; e < C; ++e) b_total[r][e] += b_bar[r][e];
    }
    const smem_t other_down = smem_address(other) + smem_t(P::template lane_bt<DEPTH>(opaque(int(threadIdx.x)) % 32));
    product_wb<E, DEPTH, true>(out, s, other_down);  // last, so that the sums of this tile occupy no registers
  }
  block_sync();
  const size_t split = (size_t)blockIdx.y * gridDim.z + blockIdx.z;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = 16 * warp + g + 8 * r, i = row0 + row;
    const Real weight = quad_sum(own_total[r]);
#pragma unroll
    for (int b = 0; b < OUT; ++b)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int k = 8 * (b / P::NT * P::NT) + P::column(b % P::NT, t, e);
        if (i < n && k < PAIR_D)
          point_parts[(split * n + i) * PAIR_D + k] = out[0][b][2 * r + e] + weight * component(memory, row, k);
      }
    if (COLUMN)
#pragma unroll
      for (int e = 0; e < C; ++e) {
        const Real sum = quad_sum(b_total[r][e]);
        if (t == 0 && i < n && column0 + e < columns)
          other_parts[((size_t)blockIdx.y * n + i) * columns + column0 + e] = sum;
      }
  }
  if (COLUMN || !PAIR_PARAMETERS) return;
  // The block's parameter cotangents: a tree over its threads, in shared memory.
  Real* sums = reinterpret_cast<Real*>(memory);
  const size_t at = split * gridDim.x + blockIdx.x;
#pragma unroll
  for (int e = 0; e < PAIR_ENTRIES; ++e) {
    block_sync();
    sums[threadIdx.x] = p_total[e];
    for (int half = THREADS / 2; half > 0; half /= 2) {
      block_sync();
      if (int(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) other_parts[at * PAIR_ENTRIES + e] = sums[0];
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    pair_products_rows(const Real* x, const Real* y, const Real* b, const Real* out_bar, const Real* stats,
                       const Real* params, Real* x_parts, Real* entry_parts, int n, int m, int columns) {
  DYNAMIC_SHARED(memory);
  products_backward<false>(memory, x, out_bar, stats, y, b, nullptr, params, x_parts, entry_parts, n, m, columns);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    pair_products_columns(const Real* x, const Real* y, const Real* b, const Real* out_bar, const Real* stats,
                          const Real* params, Real* y_parts, Real* b_parts, int n, int m, int columns) {
  DYNAMIC_SHARED(memory);
  products_backward<true>(memory, y, b, nullptr, x, out_bar, stats, params, y_parts, b_parts, m, n, columns);
}
