// Parts that the attention kernels share: configuration, position of a block, loops over tiles, one score.
//
// Constants pasted in front of this file: `typedef Bf16 | Fp16 | Fp32 | Fp64 E`; HEAD_DIM, VALUE_DIM as in
// the arrays (rows of a multiple of 16 bytes); D, DV the same padded for `Matrix`; WARPS, MT: a block owns
// 16 MT WARPS rows; SPAN: the rows of a tile that the block loops over, in STAGES (1 or 2) buffers, with PART of
// the rows in registers at once; MIN_BLOCKS: blocks that should fit on a multiprocessor. Arrays are contiguous:
// q, o (B, H, N, ·), k, v (B, G, M, ·).

typedef E::Storage Storage;
typedef Matrix<E> P;
constexpr int THREADS = 32 * WARPS, OWN = 16 * MT * WARPS, BLOCKS = PART / 8;
constexpr Real LOG2E = Real(1.4426950408889634074), LN2 = Real(0.69314718055994530942);

template <class T, T VALUE>
struct Constant {
  static constexpr T value = VALUE;
};
template <class R>
struct PairOf {
  typedef float2 Type;
};
template <>
struct PairOf<double> {
  typedef double2 Type;
};
typedef PairOf<Real>::Type RealPair;

struct Sizes {
  int heads, groups, n, m;
};  // groups: key heads; query head h reads key head h / (heads / groups)

// One tile of a loop, or the loop's end, in one register: the index along the loop and the kind of the tile.
struct Step {
  int code;
  DEVICE bool more() const { return code >= 0; }
  DEVICE int index() const { return code >> 2; }
  DEVICE int kind() const { return code & 3; }
};
DEVICE Step make_step(int index, int kind) { return {index << 2 | kind}; }
DEVICE Step end_of_walk() { return {-1}; }

DEVICE int tile_kind(const ScoreArgs& args, const ScoreHead& head, const Sizes& s, int b, int h, int q0,
                     int q1, int k0, int k1) {
  int q_end = smallest(q1, s.n), k_end = smallest(k1, s.m);
  int kind = score_tile(args, head, b, h, q0, q_end, k0, k_end);
  return kind == TILE_FULL && (q_end < q1 || k_end < k1) ? TILE_PARTIAL : kind;
}

// t = f(scale · x), or x itself if t = s; then scale log2(e) is applied in the exponential.
struct Scale { Real scale, log2; };
DEVICE Scale make_scale(Real scale) {
#if SCORE_PLAIN
  return {scale, scale * LOG2E};
#else
  return {scale, LOG2E};
#endif
}
DEVICE Real scored(Real x, const Scale& c, const ScorePair& at) {
#if SCORE_PLAIN
  return x;
#else
  return score_mod(x * c.scale, at);
#endif
}
