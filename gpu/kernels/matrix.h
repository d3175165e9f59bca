// Products of tiles by a warp, for every element type: bf16 and fp16 (m16n8k16), fp32 as three tf32 products
// (m16n8k8) or by ordinary arithmetic, and fp64 (m16n8k8).
//
// A warp computes blocks of 16 x 8 numbers. Lane l = 4 g + t holds c[0], c[1] = (g, 2t), (g, 2t + 1) and
// c[2], c[3] = (g + 8, 2t), (g + 8, 2t + 1) of every block. `Matrix<T>` defines how its operands are read:
//
//   load_a    16 rows x K of a tile with K along the row           (queries, or keys in the backward)
//   load_b    K x (8 NB) columns, from a tile with K along the row  (keys: c = a bᵀ)
//   weights   the operand a made from accumulators, without moving data   (probabilities)
//   load_bt   K x (8 NT) columns, from a tile with K down the rows  (values: c = a b)
//
// For fp32 and fp64 the sum over K has another order in weights/load_bt: position t of the instruction is
// column 2t of the accumulators, and position t + 4 is column 2t + 1. Likewise load_bt gives block i columns
// that are NT apart, so that each lane reads 16 bytes: see `column`.

// ------------------------------------------------------------------ 16-bit elements

#if SYMAD_ELEMENT_BITS == 16
template <class T>
struct Matrix {
  static constexpr int K = 16, NB = 2, NT = 2, UNROLL = 8;
  static constexpr bool TWO_LEVEL = false;  // a long sum may stay in the instruction's accumulator
  // Column of element e of block i, within the 8 NT columns of one load_bt.
  DEVICE static int column(int i, int t, int e) { return 8 * i + 2 * t + e; }
  struct A { u32 r[4]; };
  struct B { u32 r[2]; };

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
  DEVICE static int column(int i, int t, int e) { return 4 * (2 * t + e) + i; }
  struct A { float hi[4], lo[4]; };
  struct B { float hi[2], lo[2]; };

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
// 2t, 2t + 1 of two neighboring blocks of load_bt are columns 4t to 4t + 3.
#if SYMAD_ELEMENT_BITS == 32
template <>
struct Matrix<Fp32Plain> {
  static constexpr int K = 8, NB = 1, NT = 2, UNROLL = 1;
  static constexpr bool TWO_LEVEL = false;
  DEVICE static int column(int i, int t, int e) { return 4 * t + 2 * i + e; }
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
      int e = i / 2, first = i % 2 * 4;  // the odd row is the next one, whose 16-byte chunks are swapped
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
  DEVICE static int column(int i, int t, int e) { return 2 * (2 * t + e) + i; }
  struct A { double r[4]; };
  struct B { double r[2]; };

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
