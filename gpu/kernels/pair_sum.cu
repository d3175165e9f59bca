// Kernel sums over all pairs of two point sets, without the matrix of pairs.
//
// Every thread group of LANES threads owns R points in registers, and loops over the other point set in shared
// memory, tile by tile. One pass computes a value (sum, log-sum-exp or softmax mean over the streamed points) or
// the cotangents of the owned points: rows own x, columns own y. Sums have two levels: registers within a tile,
// and a second register across tiles; blockIdx.y splits the stream, and pair_combine adds the parts in a fixed
// order. There are no atomics: the same input gives the same bits.
//
// This file must follow prims.h and the text of gpu/pairs/kernel_text.py, which defines
//   PAIR_D, PAIR_SUMS         dimension of the points; number of sums over components
//   PAIR_ENTRIES              parameter entries, at least 1 (PAIR_PARAMETERS: 0 if there are none)
//   PAIR_COLUMNS              payload columns handled at once (blockIdx.z chooses which)
//   PAIR_REDUCE               0 sum, 1 logsumexp, 2 softmax
//   FORWARD_R, FORWARD_LANES, BACKWARD_R, BACKWARD_LANES, PAIR_THREADS, PAIR_TILE
//   pair_terms(x, y, p, k, sigma)                  adds term k of every sum over components
//   pair_value(sigma, x, y, p) -> f
//   pair_partials(sigma, x, y, p, f, ds, dx, dy, dp)   f and its partials (dx, dy: outside sums)
//   pair_term_partials(x, y, p, k, e, dx, dy, dp)  e_r = cotangent of sum r; dx, dy set, dp added
// Functions that use single components need whole points per thread: LANES = 1.

DEVICE Real pair_floor() { return (Real)-3e38f; }  // below every finite logit
DEVICE float pair_exp(float x) { return exp2f(x * 1.4426950408889634f); }
DEVICE double pair_exp(double x) { return exp(x); }
DEVICE float pair_log(float x) { return logf(x); }
DEVICE double pair_log(double x) { return log(x); }

// Sum over the LANES neighboring threads that share a point; every one gets the result.
template <int LANES>
DEVICE Real pair_across(Real value) {
#pragma unroll
  for (int step = 1; step < LANES; step *= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

// The offsets of a point's data in one record of the shared tile.
template <int LANES, bool STATS>
struct Record {
  static const int quad = 16 / (int)sizeof(Real);
  static const int per = LANES == 1 ? PAIR_D : (PAIR_D + LANES * quad - 1) / (LANES * quad) * quad;
  static const int columns = (PAIR_COLUMNS + LANES - 1) / LANES;
  static const int payload = per * LANES;                    // offset of the payload
  static const int stats = payload + columns * LANES;        // offset of level and delta
  static const int used = stats + (STATS ? 2 : 0);
  static const int width = (used + quad - 1) / quad * quad;  // a multiple of 16 bytes
};

template <class Shape>
DEVICE void pair_load_tile(Real* tile, const Real* points, const Real* payload,
                                const Real* stats, int first, int count, int total_columns,
                                int column0) {
  for (int at = threadIdx.x; at < count * PAIR_D; at += PAIR_THREADS)
    tile[at / PAIR_D * Shape::width + at % PAIR_D] = points[(size_t)first * PAIR_D + at];
  const int padded = Shape::stats - Shape::payload;  // lanes may hold more columns than exist
  for (int at = threadIdx.x; at < count * padded; at += PAIR_THREADS) {
    const int row = at / padded, column = at % padded;
    const bool inside = column < PAIR_COLUMNS && column0 + column < total_columns;
    tile[row * Shape::width + Shape::payload + column] =
        inside ? payload[(size_t)(first + row) * total_columns + column0 + column] : (Real)0;
  }
  if (Shape::used > Shape::stats)
    for (int at = threadIdx.x; at < count * 2; at += PAIR_THREADS)
      tile[at / 2 * Shape::width + Shape::stats + at % 2] = stats[(size_t)first * 2 + at];
}

// Row r of this thread's points; rows past the end repeat the last one and are not stored.
DEVICE int pair_row(int r, int lanes, int rows) {
  const int group = PAIR_THREADS / lanes;
  return (blockIdx.x * rows + r) * group + threadIdx.x / lanes;
}

DEVICE int pair_within(int row, int count) { return row < count ? row : count - 1; }

// The part [begin, end) of the stream that this block processes.
struct Span { int begin, end; };
DEVICE Span pair_span(int total) {
  const int tiles = (total + PAIR_TILE - 1) / PAIR_TILE;
  const int per = (tiles + gridDim.y - 1) / gridDim.y * PAIR_TILE;
  const int begin = blockIdx.y * per;
  return {begin < total ? begin : total, begin + per < total ? begin + per : total};
}

// sum: acc = Σ f b. logsumexp, softmax: acc = Σ exp(f - top) b, mass = Σ exp(f - top).
extern "C" __global__ void __launch_bounds__(PAIR_THREADS)
pair_forward(const Real* x, const Real* y, const Real* b, const Real* params, Real* parts,
             Real* level_parts, int n, int m, int columns) {
  constexpr int R = FORWARD_R, LANES = FORWARD_LANES, UNROLL = FORWARD_UNROLL;
  typedef Record<LANES, false> Shape;
  DYNAMIC_SHARED(shared);
  Real* tile = (Real*)shared;
  const int lane = threadIdx.x % LANES, column0 = blockIdx.z * PAIR_COLUMNS;
  Real p[PAIR_ENTRIES], own[R][Shape::per];
#pragma unroll
  for (int e = 0; e < PAIR_ENTRIES; ++e) p[e] = params[e];
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int k = 0; k < Shape::per; ++k) {
      const int c = lane * Shape::per + k;
      own[r][k] = c < PAIR_D ? x[(size_t)pair_within(pair_row(r, LANES, R), n) * PAIR_D + c] : 0;
    }
  Real acc[R][Shape::columns], total[R][Shape::columns], top[R], mass[R], mass_total[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    top[r] = pair_floor(), mass[r] = mass_total[r] = 0;
#pragma unroll
    for (int e = 0; e < Shape::columns; ++e) acc[r][e] = total[r][e] = 0;
  }
  const Span span = pair_span(m);
  for (int first = span.begin; first < span.end; first += PAIR_TILE) {
    const int count = span.end - first < PAIR_TILE ? span.end - first : PAIR_TILE;
    block_sync();
    pair_load_tile<Shape>(tile, y, b, 0, first, count, columns, column0);
    block_sync();
#pragma unroll UNROLL
    for (int j = 0; j < count; ++j) {
      const Real* record = (const Real*)__builtin_assume_aligned(tile + j * Shape::width, 16);
      Real other[Shape::per], weight[Shape::columns];
#pragma unroll
      for (int k = 0; k < Shape::per; ++k) other[k] = record[lane * Shape::per + k];
#pragma unroll
      for (int e = 0; e < Shape::columns; ++e)
        weight[e] = record[Shape::payload + lane * Shape::columns + e];
#pragma unroll
      for (int r = 0; r < R; ++r) {
        Real sigma[PAIR_SUMS > 0 ? PAIR_SUMS : 1] = {};
#pragma unroll
        for (int k = 0; k < Shape::per; ++k)
          if (Shape::per * LANES == PAIR_D || lane * Shape::per + k < PAIR_D)
            pair_terms(own[r][k], other[k], p, lane * Shape::per + k, sigma);
#pragma unroll
        for (int s = 0; s < PAIR_SUMS; ++s) sigma[s] = pair_across<LANES>(sigma[s]);
        Real f = pair_value(sigma, own[r], other, p);
        if (PAIR_REDUCE) {
          if (f > top[r]) {
            const Real keep = pair_exp(top[r] - f);
            top[r] = f, mass[r] *= keep, mass_total[r] *= keep;
#pragma unroll
            for (int e = 0; e < Shape::columns; ++e) acc[r][e] *= keep, total[r][e] *= keep;
          }
          f = pair_exp(f - top[r]);
          mass[r] += f;
        }
#pragma unroll
        for (int e = 0; e < Shape::columns; ++e) acc[r][e] += f * weight[e];
      }
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      mass_total[r] += mass[r], mass[r] = 0;
#pragma unroll
      for (int e = 0; e < Shape::columns; ++e) total[r][e] += acc[r][e], acc[r][e] = 0;
    }
  }
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int i = pair_row(r, LANES, R);
    if (i >= n) continue;
    const size_t part = (size_t)blockIdx.y * n + i;
#pragma unroll
    for (int e = 0; e < Shape::columns; ++e) {
      const int c = lane * Shape::columns + e;
      if (c < PAIR_COLUMNS && column0 + c < columns) parts[part * columns + column0 + c] = total[r][e];
    }
    if (PAIR_REDUCE && lane == 0 && blockIdx.z == 0)
      level_parts[part * 2] = top[r], level_parts[part * 2 + 1] = mass_total[r];
  }
}

// out[i] = Σ_s parts[s, i]
extern "C" __global__ void __launch_bounds__(PAIR_THREADS)
pair_combine(const Real* parts, Real* out, size_t count, int splits) {
  const size_t at = (size_t)blockIdx.x * PAIR_THREADS + threadIdx.x;
  if (at >= count) return;
  Real sum = 0;
#pragma unroll 8
  for (int s = 0; s < splits; ++s) sum += parts[s * count + at];
  out[at] = sum;
}

// logsumexp: out_i = top + log Σ acc; softmax: out_i = Σ acc / Σ mass, lse_i = top + log Σ mass.
extern "C" __global__ void __launch_bounds__(PAIR_THREADS)
pair_combine_levels(const Real* parts, const Real* level_parts, Real* out, Real* lse, int n,
                    int columns, int splits) {
  const int i = blockIdx.x * PAIR_THREADS + threadIdx.x;
  if (i >= n) return;
  Real top = pair_floor(), mass = 0;
  for (int s = 0; s < splits; ++s) {
    const Real other = level_parts[((size_t)s * n + i) * 2];
    top = other > top ? other : top;
  }
  for (int s = 0; s < splits; ++s) {
    const Real* level = level_parts + ((size_t)s * n + i) * 2;
    mass += level[1] * pair_exp(level[0] - top);
  }
  for (int e = 0; e < columns; ++e) {
    Real sum = 0;
    for (int s = 0; s < splits; ++s) {
      const size_t part = (size_t)s * n + i;
      sum += parts[part * columns + e] * pair_exp(level_parts[part * 2] - top);
    }
    out[(size_t)i * columns + e] = PAIR_REDUCE == 1 ? top + pair_log(sum) : sum / mass;
  }
  lse[i] = top + pair_log(mass);
}

// Cotangents of the owned points. With w = <out_bar_i, b_j> and P = exp(f - level_i):
//   sum        c = w,              weight of out_bar in b_bar: f
//   logsumexp  c = w P,            weight: P
//   softmax    c = P (w - delta_i), weight: P
// Rows (COLUMN false): own x, out_bar, (level, delta); stream y, b. Compute x_bar and the parameters' cotangents.
// Columns: own y, b; stream x, out_bar, (level, delta). Compute y_bar and b_bar.
template <bool COLUMN>
DEVICE void pair_backward(Real* tile, const Real* own_points, const Real* own_payload,
                               const Real* own_stats, const Real* stream_points,
                               const Real* stream_payload, const Real* stream_stats,
                               const Real* params, Real* point_parts, Real* other_parts, int n,
                               int m, int columns) {
  const int R = BACKWARD_R, LANES = BACKWARD_LANES;
  const bool STATS = PAIR_REDUCE != 0;
  typedef Record<LANES, COLUMN && STATS> Shape;
  const int lane = threadIdx.x % LANES, column0 = blockIdx.z * PAIR_COLUMNS;
  Real p[PAIR_ENTRIES], p_bar[PAIR_ENTRIES] = {}, p_total[PAIR_ENTRIES] = {};
  Real own[R][Shape::per], payload[R][Shape::columns], level[R], delta[R];
  Real bar[R][Shape::per], bar_total[R][Shape::per];
  Real b_bar[R][Shape::columns], b_total[R][Shape::columns];
#pragma unroll
  for (int e = 0; e < PAIR_ENTRIES; ++e) p[e] = params[e];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const size_t i = pair_within(pair_row(r, LANES, R), n);
    const bool mine = pair_row(r, LANES, R) < n;  // repeated rows have cotangent 0
#pragma unroll
    for (int k = 0; k < Shape::per; ++k) {
      const int c = lane * Shape::per + k;
      own[r][k] = c < PAIR_D ? own_points[i * PAIR_D + c] : 0;
      bar[r][k] = bar_total[r][k] = 0;
    }
#pragma unroll
    for (int e = 0; e < Shape::columns; ++e) {
      const int c = lane * Shape::columns + e;
      const bool inside = c < PAIR_COLUMNS && column0 + c < columns;
      payload[r][e] = inside && mine ? own_payload[i * columns + column0 + c] : 0;
      b_bar[r][e] = b_total[r][e] = 0;
    }
    level[r] = STATS && !COLUMN ? own_stats[i * 2] : 0;
    delta[r] = STATS && !COLUMN && mine ? own_stats[i * 2 + 1] : 0;
  }
  const Span span = pair_span(m);
  for (int first = span.begin; first < span.end; first += PAIR_TILE) {
    const int count = span.end - first < PAIR_TILE ? span.end - first : PAIR_TILE;
    block_sync();
    pair_load_tile<Shape>(tile, stream_points, stream_payload, stream_stats, first, count, columns,
                          column0);
    block_sync();
    for (int j = 0; j < count; ++j) {
      const Real* record = (const Real*)__builtin_assume_aligned(tile + j * Shape::width, 16);
      Real other[Shape::per], other_payload[Shape::columns];
#pragma unroll
      for (int k = 0; k < Shape::per; ++k) other[k] = record[lane * Shape::per + k];
#pragma unroll
      for (int e = 0; e < Shape::columns; ++e)
        other_payload[e] = record[Shape::payload + lane * Shape::columns + e];
#pragma unroll
      for (int r = 0; r < R; ++r) {
        const Real* xi = COLUMN ? other : own[r];
        const Real* yj = COLUMN ? own[r] : other;
        Real sigma[PAIR_SUMS > 0 ? PAIR_SUMS : 1] = {}, ds[PAIR_SUMS > 0 ? PAIR_SUMS : 1] = {};
        Real dx[Shape::per] = {}, dy[Shape::per] = {}, dp[PAIR_ENTRIES] = {}, f, w = 0;
#pragma unroll
        for (int k = 0; k < Shape::per; ++k)
          if (Shape::per * LANES == PAIR_D || lane * Shape::per + k < PAIR_D)
            pair_terms(xi[k], yj[k], p, lane * Shape::per + k, sigma);
#pragma unroll
        for (int e = 0; e < Shape::columns; ++e) w += payload[r][e] * other_payload[e];
#pragma unroll
        for (int s = 0; s < PAIR_SUMS; ++s) sigma[s] = pair_across<LANES>(sigma[s]);
        w = pair_across<LANES>(w);
        pair_partials(sigma, xi, yj, p, f, ds, dx, dy, dp);
        if (STATS) {
          const Real level_i = COLUMN ? record[Shape::stats] : level[r];
          const Real delta_i = COLUMN ? record[Shape::stats + 1] : delta[r];
          f = pair_exp(f - level_i);
          // The column chunks of blockIdx.z are summed, so that only one of them subtracts delta.
          w = f * (PAIR_REDUCE == 2 && blockIdx.z == 0 ? w - delta_i : w);
        }
#pragma unroll
        for (int s = 0; s < PAIR_SUMS; ++s) ds[s] *= w;
#pragma unroll
        for (int k = 0; k < Shape::per; ++k) {
          if (Shape::per * LANES != PAIR_D && lane * Shape::per + k >= PAIR_D) continue;
          Real gx = 0, gy = 0;
          pair_term_partials(xi[k], yj[k], p, lane * Shape::per + k, ds, gx, gy, p_bar);
          bar[r][k] += COLUMN ? gy + w * dy[k] : gx + w * dx[k];
        }
        if (!COLUMN && PAIR_PARAMETERS)
#pragma unroll
          for (int e = 0; e < PAIR_ENTRIES; ++e) p_bar[e] += lane == 0 ? w * dp[e] : (Real)0;
#pragma unroll
        for (int e = 0; e < Shape::columns; ++e) b_bar[r][e] += f * other_payload[e];
      }
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
#pragma unroll
      for (int k = 0; k < Shape::per; ++k) bar_total[r][k] += bar[r][k], bar[r][k] = 0;
#pragma unroll
      for (int e = 0; e < Shape::columns; ++e) b_total[r][e] += b_bar[r][e], b_bar[r][e] = 0;
    }
#pragma unroll
    for (int e = 0; e < PAIR_ENTRIES; ++e) p_total[e] += p_bar[e], p_bar[e] = 0;
  }
  const size_t split = (size_t)blockIdx.y * gridDim.z + blockIdx.z;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const size_t i = pair_row(r, LANES, R);
    if (i >= n) continue;
#pragma unroll
    for (int k = 0; k < Shape::per; ++k) {
      const int c = lane * Shape::per + k;
      if (c < PAIR_D) point_parts[(split * n + i) * PAIR_D + c] = bar_total[r][k];
    }
    if (COLUMN)
#pragma unroll
      for (int e = 0; e < Shape::columns; ++e) {
        const int c = lane * Shape::columns + e;
        if (c < PAIR_COLUMNS && column0 + c < columns)
          other_parts[((size_t)blockIdx.y * n + i) * columns + column0 + c] = b_total[r][e];
      }
  }
  if (COLUMN || !PAIR_PARAMETERS) return;
  // The block's parameter cotangents: a tree over its threads, in shared memory.
  const size_t block = split * gridDim.x + blockIdx.x;
#pragma unroll
  for (int e = 0; e < PAIR_ENTRIES; ++e) {
    block_sync();
    tile[threadIdx.x] = p_total[e];
    for (int half = PAIR_THREADS / 2; half > 0; half /= 2) {
      block_sync();
      if (threadIdx.x < half) tile[threadIdx.x] += tile[threadIdx.x + half];
    }
    if (threadIdx.x == 0) other_parts[block * PAIR_ENTRIES + e] = tile[0];
  }
}

extern "C" __global__ void __launch_bounds__(PAIR_THREADS)
pair_backward_rows(const Real* x, const Real* y, const Real* b, const Real* out_bar,
                   const Real* stats, const Real* params, Real* x_parts, Real* entry_parts, int n,
                   int m, int columns) {
  DYNAMIC_SHARED(shared);
  pair_backward<false>((Real*)shared, x, out_bar, stats, y, b, 0, params, x_parts, entry_parts, n,
                       m, columns);
}

extern "C" __global__ void __launch_bounds__(PAIR_THREADS)
pair_backward_columns(const Real* x, const Real* y, const Real* b, const Real* out_bar,
                      const Real* stats, const Real* params, Real* y_parts, Real* b_parts, int n,
                      int m, int columns) {
  DYNAMIC_SHARED(shared);
  pair_backward<true>((Real*)shared, y, b, 0, x, out_bar, stats, params, y_parts, b_parts, m, n,
                      columns);
}
