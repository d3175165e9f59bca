// Kernel sums of functions of the inner product and the norms, on tensor cores: <x_i, y_j> for tiles of pairs,
// then f of it for each pair. Forward only; the parts are added up by the kernels of pair_sum.cu.
//
// The points are read as numbers of type E, float32 in three tf32 products or bf16, and norms are those of the
// numbers as they are read, so that |x - y|^2 = |x|^2 + |y|^2 - 2 <x, y> is that of two points near the given ones.
//
// Before this file stand prims.h, tile.h, matrix.h, product.h and the text of gpu/pairs/kernel_text.py, which defines
// what pair_sum.cu lists, and `typedef Fp32 | Bf16 E`, PRODUCT_COLUMNS (payload columns of a launch) and
//   pair_sigma(s, nx, ny, sigma)     the sums over components, from <x, y>, |x|^2 and |y|^2

typedef E::Storage Storage;
constexpr int ROWS = 64, THREADS = 128, DEPTH = (PAIR_D + 15) / 16 * 16;
typedef Tile<E, DEPTH> Points;

DEVICE Real product_exp(Real x) { return exp2f(x * 1.4426950408889634f); }

// Points [first, first + ROWS) as a tile, and their norms squared; zeros outside.
DEVICE void load_points(char* tile, Real* norms, const Real* points, int first, int count) {
  for (int i = int(threadIdx.x); i < ROWS * DEPTH; i += THREADS) {
    const int row = i / DEPTH, k = i % DEPTH, byte = k * int(sizeof(Storage));
    const Real x = first + row < count && k < PAIR_D ? points[(size_t)(first + row) * PAIR_D + k] : Real(0);
    *reinterpret_cast<Storage*>(tile + Points::offset(row, byte & ~15) + (byte & 15)) = rounded<E>(x);
  }
  block_sync();
  for (int row = int(threadIdx.x); row < ROWS; row += THREADS) {
    Real sum = 0;
    for (int k = 0; k < PAIR_D; ++k) {
      const int byte = k * int(sizeof(Storage));
      const Real x = unpack<E>(*reinterpret_cast<Storage*>(tile + Points::offset(row, byte & ~15) + (byte & 15)));
      sum += x * x;
    }
    norms[row] = sum;
  }
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
  load_points(memory, own_norms, x, row0, n);
  Real total[2][C], top[2], mass[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    top[r] = Real(-3e38f), mass[r] = 0;
#pragma unroll
    for (int e = 0; e < C; ++e) total[r][e] = 0;
  }
  const int tiles = (m + ROWS - 1) / ROWS, per = (tiles + int(gridDim.y) - 1) / int(gridDim.y);
  const int last = smallest((int(blockIdx.y) + 1) * per * ROWS, m);
  for (int first = int(blockIdx.y) * per * ROWS; first < last; first += ROWS) {
    block_sync();
    load_points(other, other_norms, y, first, m);
    for (int i = int(threadIdx.x); i < ROWS * C; i += THREADS) {
      const int j = first + i / C, e = column0 + i % C;
      payload[i] = j < m && e < columns ? b[(size_t)j * columns + e] : Real(0);
    }
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
    const size_t part = (size_t)blockIdx.y * n + i;
#pragma unroll
    for (int e = 0; e < C; ++e) {
      const Real sum = quad_sum(total[r][e] * keep);
      if (t == 0 && i < n && column0 + e < columns) parts[part * columns + column0 + e] = sum;
    }
    if (PAIR_REDUCE && t == 0 && i < n && blockIdx.z == 0)
      level_parts[part * 2] = highest, level_parts[part * 2 + 1] = all;
  }
}
