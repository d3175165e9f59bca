// Operations of a warp on tiles: products, and the storing of results.

template <int N>
DEVICE void clear(Real (&c)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) c[n][i] = 0;
}

// c[m][n] += a bᵀ over COLS columns: MT blocks of 16 rows at `a`, 8 NB rows of b per load at `b`.
template <class T, int COLS, int MT, int BLOCKS>
DEVICE void product_abt(Real (&c)[MT][BLOCKS][4], smem_t a, smem_t b) {
  typedef Matrix<T> P;
  constexpr int LINE = 128 / int(sizeof(typename T::Storage)), LINES = (COLS + LINE - 1) / LINE;
#pragma unroll P::UNROLL
  for (int line = 0; line < LINES; ++line, a += 128, b += 128) {
#pragma unroll
    for (int k = 0; k < (COLS < LINE ? COLS : LINE); k += P::K) {
      if (COLS % LINE && line * LINE + k >= COLS) break;
      typename P::A rows[MT];
#pragma unroll
      for (int m = 0; m < MT; ++m) rows[m] = P::template load_a<COLS>(a, 16 * m, k);
#pragma unroll
      for (int n = 0; n < BLOCKS; n += P::NB) {
        typename P::B columns[P::NB];
        P::template load_b<COLS>(columns, b, 8 * n, k);
#pragma unroll
        for (int m = 0; m < MT; ++m)
#pragma unroll
          for (int i = 0; i < P::NB; ++i) P::add_product(c[m][n + i], rows[m], columns[i]);
      }
    }
  }
}

// out[m][n] += w b: the accumulators w are MT blocks of 16 rows x BLOCKS * 8, and b has as many rows. With SHORT the
// sum over these rows is computed separately and then added.
template <class T, int COLS, bool SHORT = Matrix<T>::TWO_LEVEL, int MT, int BLOCKS, int OUT>
DEVICE void product_wb(Real (&out)[MT][OUT][4], const Real (&w)[MT][BLOCKS][4], smem_t b) {
  typedef Matrix<T> P;
  constexpr int STEPS = BLOCKS * 8 / P::K;
  if constexpr (SHORT) {
#pragma unroll
    for (int n = 0; n < OUT; n += P::NT) {
      Real part[MT][P::NT][4];
#pragma unroll
      for (int m = 0; m < MT; ++m) clear(part[m]);
#pragma unroll
      for (int step = 0; step < STEPS; ++step) {
        typename P::B columns[P::NT];
        P::template load_bt<COLS>(columns, b, P::K * step, 8 * n);
#pragma unroll
        for (int m = 0; m < MT; ++m) {
          typename P::A rows = P::weights(w[m], step);
#pragma unroll
          for (int i = 0; i < P::NT; ++i) P::add_product(part[m][i], rows, columns[i]);
        }
      }
#pragma unroll
      for (int m = 0; m < MT; ++m)
#pragma unroll
        for (int i = 0; i < P::NT; ++i)
#pragma unroll
          for (int e = 0; e < 4; ++e) out[m][n + i][e] += part[m][i][e];
    }
  } else {
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
      typename P::A rows[MT];
#pragma unroll
      for (int m = 0; m < MT; ++m) rows[m] = P::weights(w[m], step);
#pragma unroll
      for (int n = 0; n < OUT; n += P::NT) {
        typename P::B columns[P::NT];
        P::template load_bt<COLS>(columns, b, P::K * step, 8 * n);
#pragma unroll
        for (int m = 0; m < MT; ++m)
#pragma unroll
          for (int i = 0; i < P::NT; ++i) P::multiply(out[m][n + i], rows[m], columns[i]);
      }
    }
  }
}

// Rows [row0, row0 + 16 MT) of a result whose rows have `width` numbers; the warp's blocks begin at `first`.
template <class T, int MT, int OUT>
DEVICE void store_rows(typename T::Storage* to, Real (&c)[MT][OUT][4], int row0, int rows, int first, int width,
                       const Real (&factor)[MT][2]) {
  typedef Matrix<T> P;
  int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int m = 0; m < MT; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = row0 + 16 * m + 8 * half + g;
      if (row >= rows) continue;
#pragma unroll
      for (int n = 0; n < OUT; n += P::NT)
        P::store(to + size_t(row) * size_t(width), reinterpret_cast<const Real(&)[P::NT][4]>(c[m][n]), half,
                 first + 8 * n, t, width, factor[m][half]);
    }
}

// c += factor x for the rows x of a matrix that store_rows would write.
template <class T, int MT, int OUT>
DEVICE void add_rows(Real (&c)[MT][OUT][4], const typename T::Storage* from, int row0, int rows, int first, int width,
                     const Real (&factor)[MT][2]) {
  typedef Matrix<T> P;
  int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int m = 0; m < MT; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int row = row0 + 16 * m + 8 * half + g;
      if (row >= rows) continue;
      const typename T::Storage* x = from + size_t(row) * size_t(width);
#pragma unroll
      for (int n = 0; n < OUT; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          int at = first + 8 * (n / P::NT * P::NT) + P::column(n % P::NT, t, e);
          if (at < width) c[m][n][2 * half + e] += factor[m][half] * unpack<T>(x[at]);
        }
    }
}
