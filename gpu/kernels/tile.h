// Tiles of matrices in shared memory, and warp-level products of them on tensor cores, for every
// element type: bf16 and fp16 (m16n8k16), fp32 as three tf32 products (m16n8k8), fp64 (m16n8k8).
//
// A warp computes blocks of 16 x 8 numbers. Lane l = 4 g + t holds c[0], c[1] = (g, 2t), (g, 2t + 1) and
// c[2], c[3] = (g + 8, 2t), (g + 8, 2t + 1) of every block. `Matrix<T>` says where its operands come from:
//
//   load_a    16 rows x K of a tile with K along the row           (queries, or keys in the backward)
//   load_b    K x (8 NB) columns, from a tile with K along the row  (keys: c = a bᵀ)
//   weights   the operand a made from accumulators, no data moved   (probabilities)
//   load_bt   K x (8 NT) columns, from a tile with K down the rows  (values: c = a b)
//
// For fp32 and fp64 the sum over K runs in another order in weights/load_bt: position t of the
// instruction is column 2t of the accumulators, position t + 4 column 2t + 1. Likewise load_bt gives block i
// columns NT apart, so that each lane reads 16 bytes; `column` undoes that.

// Rows of COLS elements, stored in pitches of 128 bytes whose 16-byte chunks are permuted by the row
// (XOR) so that the accesses below meet all banks.
template <class T, int COLS>
struct Tile {
  typedef typename T::Storage Storage;
  static constexpr int BYTES = COLS * int(sizeof(Storage));
  static constexpr int PITCH = BYTES <= 32 ? 32 : BYTES <= 64 ? 64 : (BYTES + 127) / 128 * 128;
  static constexpr int PER_CHUNK = 16 / int(sizeof(Storage));

  DEVICE static constexpr int size(int rows) { return rows * PITCH; }

  DEVICE static int permutation(int row) {
    if (sizeof(Storage) == 8) return ((row ^ row >> 1) & 1) << 6 | (row >> 2 & 1) << 5;
    if (PITCH == 32) return (row >> 2 & 1) << 4;
    if (PITCH == 64) return (row >> 1 & 3) << 4;
    return (row & 7) << 4;
  }
  // Offset of a 16-byte chunk. The permutation of a row depends on row % 8 only.
  DEVICE static int offset(int row, int byte) { return row * PITCH + (byte ^ permutation(row)); }
  // The chunk `row` (a multiple of 8) further down and `byte` (a multiple of 32) further right.
  DEVICE static smem_t move(smem_t from, int row, int byte) {
    return (from ^ smem_t(byte & 127)) + smem_t(byte & ~127) + smem_t(row * PITCH);
  }
};

// Starts copying rows [row0, row0 + ROWS) of a matrix with `rows` rows, `pitch` elements apart, into a
// tile; zeros outside of the matrix (row0 may be negative) and beyond `width` columns.
template <class T, int COLS, int ROWS, int THREADS>
DEVICE void load_tile(smem_t tile, const typename T::Storage* from, int row0, int rows, int pitch, int width) {
  typedef Tile<T, COLS> Shape;
  constexpr int CHUNKS = Shape::BYTES / 16, TOTAL = ROWS * CHUNKS;
  int thread = opaque(int(threadIdx.x));  // a few instructions per tile instead of registers all the time
  if constexpr (THREADS % CHUNKS == 0 && TOTAL % THREADS == 0) {
    constexpr int STEP = THREADS / CHUNKS;
    int row = thread / CHUNKS, chunk = thread % CHUNKS * 16, column = thread % CHUNKS * Shape::PER_CHUNK;
    bool inside = column < width;
    const typename T::Storage* source = from + (long long)(row0 + row) * pitch + column;
    smem_t to = tile + smem_t(Shape::offset(row, chunk));
#pragma unroll
    for (int i = 0; i < TOTAL / THREADS; ++i) {
      int further = i * STEP;
      bool valid = inside && u32(row0 + row + further) < u32(rows);
      smem_t at = STEP % 8 ? tile + smem_t(Shape::offset(row + further, chunk)) : to + smem_t(further * Shape::PITCH);
      cp_async<16>(at, valid ? source + (long long)(further) * pitch : from, valid);
    }
  } else {
    for (int i = thread; i < TOTAL; i += THREADS) {
      int row = i / CHUNKS, chunk = i % CHUNKS, column = chunk * Shape::PER_CHUNK;
      bool valid = column < width && u32(row0 + row) < u32(rows);
      cp_async<16>(tile + smem_t(Shape::offset(row, chunk * 16)),
                   valid ? from + (long long)(row0 + row) * pitch + column : from, valid);
    }
  }
}

// ------------------------------------------------------------------ 16-bit elements

#if SYMAD_ELEMENT_BITS == 16
template <class T>
struct Matrix {
  static constexpr int K = 16, NB = 2, NT = 2, UNROLL = 8;
  static constexpr bool TWO_LEVEL = false;  // the accumulator of a long sum may be the instruction's
  struct A { u32 r[4]; };
  struct B { u32 r[2]; };

  DEVICE static int column(int block, int t, int e) { return 8 * block + 2 * t + e; }

  template <int COLS>
  DEVICE static int lane_a(int lane) { return Tile<T, COLS>::offset(lane & 15, (lane >> 4) * 16); }
  template <int COLS>
  DEVICE static int lane_b(int lane) { return Tile<T, COLS>::offset((lane & 7) | (lane >> 1 & 8), (lane >> 3 & 1) * 16); }
  template <int COLS>
  DEVICE static int lane_bt(int lane) { return lane_a<COLS>(lane); }

  template <int COLS>
  DEVICE static A load_a(smem_t at, int row, int k) {
    A a;
    ldmatrix(a.r, Tile<T, COLS>::move(at, row, k * 2));
    return a;
  }
  // The operand a from a tile that holds it transposed: K down the rows.
  template <int COLS>
  DEVICE static int lane_at(int lane) { return lane_b<COLS>(lane); }
  template <int COLS>
  DEVICE static A load_at(smem_t at, int k, int row) {
    A a;
    ldmatrix_trans(a.r, Tile<T, COLS>::move(at, k, row * 2));
    return a;
  }
  template <int COLS>
  DEVICE static void load_b(B (&b)[NB], smem_t at, int row, int k) {
    u32 r[4];
    ldmatrix(r, Tile<T, COLS>::move(at, row, k * 2));
    b[0] = {{r[0], r[1]}};
    b[1] = {{r[2], r[3]}};
  }
  template <int COLS>
  DEVICE static void load_bt(B (&b)[NT], smem_t at, int k, int column) {
    u32 r[4];
    ldmatrix_trans(r, Tile<T, COLS>::move(at, k, column * 2));
    b[0] = {{r[0], r[1]}};
    b[1] = {{r[2], r[3]}};
  }
  template <int BLOCKS>
  DEVICE static A weights(const Real (&c)[BLOCKS][4], int step) {
    const Real(&x)[4] = c[2 * step];
    const Real(&y)[4] = c[2 * step + 1];
    return {{pack<T>(x[0], x[1]), pack<T>(x[2], x[3]), pack<T>(y[0], y[1]), pack<T>(y[2], y[3])}};
  }
  DEVICE static void multiply(Real (&c)[4], const A& a, const B& b);
  DEVICE static void add_product(Real (&c)[4], const A& a, const B& b) { multiply(c, a, b); }
  // NT blocks (those of one load_bt) of one row of the result.
  DEVICE static void store(u16* row, const Real (&c)[NT][4], int half, int first, int t, int width, Real factor) {
#pragma unroll
    for (int i = 0; i < NT; ++i) {
      int at = first + 8 * i + 2 * t;
      if (at < width)
        *reinterpret_cast<u32*>(row + at) = pack<T>(c[i][2 * half] * factor, c[i][2 * half + 1] * factor);
    }
  }
};
template <>
DEVICE void Matrix<Bf16>::multiply(Real (&c)[4], const A& a, const B& b) { mma_bf16(c, a.r, b.r); }
template <>
DEVICE void Matrix<Fp16>::multiply(Real (&c)[4], const A& a, const B& b) { mma_fp16(c, a.r, b.r); }
#endif

// ------------------------------------------------------------------ fp32 as 3 x tf32

#if SYMAD_ELEMENT_BITS != 16
template <class T>
struct Matrix;
#endif

#if SYMAD_ELEMENT_BITS == 32 && defined(SYMAD_TENSOR_CORES)
template <>
struct Matrix<Fp32> {
  static constexpr int K = 8, NB = 2, NT = 4, UNROLL = 1;
  static constexpr bool TWO_LEVEL = true;  // tensor cores truncate: keep their sums short
  struct A { float hi[4], lo[4]; };
  struct B { float hi[2], lo[2]; };

  DEVICE static int column(int block, int t, int e) { return 32 * (block / 4) + 4 * (2 * t + e) + block % 4; }

  // x = hi + lo to 22 bits: hi is x rounded to the 11 bits of tf32; the instruction truncates lo.
  DEVICE static void split(float x, float& hi, float& lo) {
    hi = __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
    lo = x - hi;
  }

  template <int COLS>
  DEVICE static int lane_a(int lane) { return Tile<Fp32, COLS>::offset(lane & 15, (lane >> 4) * 16); }
  template <int COLS>
  DEVICE static int lane_b(int lane) { return Tile<Fp32, COLS>::offset((lane & 7) | (lane >> 1 & 8), (lane >> 3 & 1) * 16); }
  template <int COLS>
  DEVICE static int lane_bt(int lane) { return Tile<Fp32, COLS>::offset(2 * (lane & 3), (lane >> 2) * 16); }

  template <int COLS>
  DEVICE static A load_a(smem_t at, int row, int k) {
    u32 r[4];
    ldmatrix(r, Tile<Fp32, COLS>::move(at, row, k * 4));
    A a;
#pragma unroll
    for (int i = 0; i < 4; ++i) split(__uint_as_float(r[i]), a.hi[i], a.lo[i]);
    return a;
  }
  template <int COLS>
  DEVICE static void load_b(B (&b)[NB], smem_t at, int row, int k) {
    u32 r[4];
    ldmatrix(r, Tile<Fp32, COLS>::move(at, row, k * 4));
#pragma unroll
    for (int i = 0; i < 4; ++i) split(__uint_as_float(r[i]), b[i / 2].hi[i % 2], b[i / 2].lo[i % 2]);
  }
  template <int COLS>
  DEVICE static void load_bt(B (&b)[NT], smem_t at, int k, int column) {
    smem_t even = Tile<Fp32, COLS>::move(at, k, column * 4);
    float4 x = load_shared<float4>(even);
    float4 y = load_shared<float4>((even ^ 16) + smem_t(Tile<Fp32, COLS>::PITCH));  // the next row
    split(x.x, b[0].hi[0], b[0].lo[0]);
    split(x.y, b[1].hi[0], b[1].lo[0]);
    split(x.z, b[2].hi[0], b[2].lo[0]);
    split(x.w, b[3].hi[0], b[3].lo[0]);
    split(y.x, b[0].hi[1], b[0].lo[1]);
    split(y.y, b[1].hi[1], b[1].lo[1]);
    split(y.z, b[2].hi[1], b[2].lo[1]);
    split(y.w, b[3].hi[1], b[3].lo[1]);
  }
  template <int BLOCKS>
  DEVICE static A weights(const Real (&c)[BLOCKS][4], int step) {
    A a;
    split(c[step][0], a.hi[0], a.lo[0]);
    split(c[step][2], a.hi[1], a.lo[1]);
    split(c[step][1], a.hi[2], a.lo[2]);
    split(c[step][3], a.hi[3], a.lo[3]);
    return a;
  }
  DEVICE static void multiply(Real (&c)[4], const A& a, const B& b) {
    mma_tf32(c, a.lo, b.hi);
    mma_tf32(c, a.hi, b.lo);
    mma_tf32(c, a.hi, b.hi);
  }
  // Sums over the head dim are rounded here: truncation would bias every score toward 0.
  DEVICE static void add_product(Real (&c)[4], const A& a, const B& b) {
    Real part[4] = {0, 0, 0, 0};
    multiply(part, a, b);
#pragma unroll
    for (int i = 0; i < 4; ++i) c[i] += part[i];
  }
  DEVICE static void store(float* row, const Real (&c)[NT][4], int half, int first, int t, int width, Real factor) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      int at = first + 8 * t + 4 * e, i = 2 * half + e;
      if (at < width)
        *reinterpret_cast<float4*>(row + at) =
            make_float4(c[0][i] * factor, c[1][i] * factor, c[2][i] * factor, c[3][i] * factor);
    }
  }
};
#endif

// ------------------------------------------------------------------ fp32 without tensor cores

// The same interface for ordinary arithmetic: every lane computes the elements that it holds. Here a lane's columns
// 2t, 2t + 1 of two neighbouring blocks of load_bt are columns 4t to 4t + 3.
#if SYMAD_ELEMENT_BITS == 32
template <>
struct Matrix<Fp32Plain> {
  static constexpr int K = 8, NB = 1, NT = 2, UNROLL = 1;
  static constexpr bool TWO_LEVEL = false;
  struct A { float r[2][8]; };  // rows g, g + 8
  struct B { float r[8][2]; };  // columns 2t, 2t + 1

  template <int COLS>
  DEVICE static int lane_a(int lane) { return Tile<Fp32Plain, COLS>::offset(lane >> 2, 0); }
  template <int COLS>
  DEVICE static int lane_b(int lane) { return Tile<Fp32Plain, COLS>::offset(2 * (lane & 3), 0); }
  template <int COLS>
  DEVICE static int lane_bt(int lane) { return (lane & 3) * 16; }

  template <int COLS>
  DEVICE static A load_a(smem_t at, int row, int k) {
    typedef Tile<Fp32Plain, COLS> Shape;
    A a;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float4 x = load_shared<float4>(Shape::move(at, row + i / 2 * 8, k * 4 + i % 2 * 16));
      float* to = a.r[i / 2] + i % 2 * 4;
      to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
    }
    return a;
  }
  template <int COLS>
  DEVICE static void load_b(B (&b)[NB], smem_t at, int row, int k) {
    typedef Tile<Fp32Plain, COLS> Shape;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int e = i / 2, first = i % 2 * 4;  // the odd row is one further down, where 16 bytes are swapped
      smem_t from = Shape::move(at, row, (k * 4 + i % 2 * 16) ^ e * 16) + smem_t(e * Shape::PITCH);
      float4 x = load_shared<float4>(from);
      b[0].r[first][e] = x.x, b[0].r[first + 1][e] = x.y;
      b[0].r[first + 2][e] = x.z, b[0].r[first + 3][e] = x.w;
    }
  }
  template <int COLS>
  DEVICE static void load_bt(B (&b)[NT], smem_t at, int k, int column) {
    typedef Tile<Fp32Plain, COLS> Shape;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      smem_t row = Shape::move(at, k, (column * 4) ^ Shape::permutation(i)) + smem_t(i * Shape::PITCH);
      float4 x = load_shared<float4>(row);
      b[0].r[i][0] = x.x, b[0].r[i][1] = x.y, b[1].r[i][0] = x.z, b[1].r[i][1] = x.w;
    }
  }
  // The other lanes of a row hold the other columns.
  template <int BLOCKS>
  DEVICE static A weights(const Real (&c)[BLOCKS][4], int step) {
    A a;
#pragma unroll
    for (int i = 0; i < 16; ++i)
      a.r[i / 8][i % 8] = __shfl_sync(~0u, c[step][i / 8 * 2 + i % 2], int(threadIdx.x) % 32 / 4 * 4 + i % 8 / 2);
    return a;
  }
  DEVICE static void multiply(Real (&c)[4], const A& a, const B& b) {
#pragma unroll
    for (int k = 0; k < 8; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i) c[i] = __fmaf_rn(a.r[i / 2][k], b.r[k][i % 2], c[i]);
  }
  DEVICE static void add_product(Real (&c)[4], const A& a, const B& b) { multiply(c, a, b); }
  DEVICE static void store(float* row, const Real (&c)[NT][4], int half, int first, int t, int width, Real factor) {
    int at = first + 4 * t, i = 2 * half;
    if (at < width)
      *reinterpret_cast<float4*>(row + at) =
          make_float4(c[0][i] * factor, c[0][i + 1] * factor, c[1][i] * factor, c[1][i + 1] * factor);
  }
};
#endif

// ------------------------------------------------------------------ fp64

#if SYMAD_ELEMENT_BITS == 64
template <>
struct Matrix<Fp64> {
  static constexpr int K = 8, NB = 1, NT = 2, UNROLL = 1;
  static constexpr bool TWO_LEVEL = false;
  struct A { double r[4]; };
  struct B { double r[2]; };

  DEVICE static int column(int block, int t, int e) { return 16 * (block / 2) + 2 * (2 * t + e) + block % 2; }

  template <int COLS>
  DEVICE static int lane_a(int lane) { return Tile<Fp64, COLS>::offset(lane >> 2, (lane & 3) * 16); }
  template <int COLS>
  DEVICE static int lane_b(int lane) { return lane_a<COLS>(lane); }
  template <int COLS>
  DEVICE static int lane_bt(int lane) { return Tile<Fp64, COLS>::offset(2 * (lane & 3), (lane >> 2) * 16); }

  template <int COLS>
  DEVICE static A load_a(smem_t at, int row, int k) {
    double2 x = load_shared<double2>(Tile<Fp64, COLS>::move(at, row, k * 8));
    double2 y = load_shared<double2>(Tile<Fp64, COLS>::move(at, row + 8, k * 8));
    return {{x.x, y.x, x.y, y.y}};
  }
  template <int COLS>
  DEVICE static void load_b(B (&b)[NB], smem_t at, int row, int k) {
    double2 x = load_shared<double2>(Tile<Fp64, COLS>::move(at, row, k * 8));
    b[0] = {{x.x, x.y}};
  }
  template <int COLS>
  DEVICE static void load_bt(B (&b)[NT], smem_t at, int k, int column) {
    smem_t even = Tile<Fp64, COLS>::move(at, k, column * 8);
    double2 x = load_shared<double2>(even);
    double2 y = load_shared<double2>((even ^ 64) + smem_t(Tile<Fp64, COLS>::PITCH));
    b[0] = {{x.x, y.x}};
    b[1] = {{x.y, y.y}};
  }
  template <int BLOCKS>
  DEVICE static A weights(const Real (&c)[BLOCKS][4], int step) {
    return {{c[step][0], c[step][2], c[step][1], c[step][3]}};
  }
  DEVICE static void multiply(Real (&c)[4], const A& a, const B& b) { mma_f64(c, a.r, b.r); }
  DEVICE static void add_product(Real (&c)[4], const A& a, const B& b) { multiply(c, a, b); }
  DEVICE static void store(double* row, const Real (&c)[NT][4], int half, int first, int t, int width, Real factor) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      int at = first + 4 * t + 2 * e, i = 2 * half + e;
      if (at < width) *reinterpret_cast<double2*>(row + at) = make_double2(c[0][i] * factor, c[1][i] * factor);
    }
  }
};
#endif

// ------------------------------------------------------------------ products of a warp

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

// out[m][n] += w b: the accumulators w are MT blocks of 16 rows x BLOCKS * 8, b has as many rows.
template <class T, int COLS, int MT, int BLOCKS, int OUT>
DEVICE void product_wb(Real (&out)[MT][OUT][4], const Real (&w)[MT][BLOCKS][4], smem_t b) {
  typedef Matrix<T> P;
  constexpr int STEPS = BLOCKS * 8 / P::K;
  if constexpr (P::TWO_LEVEL) {
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
