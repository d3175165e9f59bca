// Products of stacks of matrices, c[b, i, j] = sum over k of a[b, i, k] b[b, k, j], for any strides.
//
// It replaces cuBLAS when a CUDA graph is recorded, which CuPy does not allow for cuBLAS calls. A block owns 64 x 64
// results, a warp 32 x 32 of them. Sums have one order, so that the bits are the same in every run. float32 is
// multiplied as three tf32 products, 22 bits of every factor. It needs compute capability 8.0.
//
// Constants pasted in front of this file: `typedef Bf16 | Fp16 | Fp32 | Fp64 E`.

typedef E::Storage Storage;
constexpr int SIDE = 64, WARP_SIDE = 32, THREADS = 128;
constexpr int DEPTH = sizeof(Storage) == 2 ? 32 : 16;  // along the sum
typedef Tile<E, DEPTH> Part;

// Distances in elements, from matrix to matrix, along the results and along the sum.
struct Operand {
  const Storage* from;
  long long batch, line, depth;
};

// Rows [first, first + SIDE) of an operand from place `k` of the sum on; zeros outside. Neighboring threads read
// along the axis with the shorter stride.
DEVICE void load(char* to, const Operand& x, int first, int lines, int k, int depth) {
  const bool along = x.depth <= x.line;
  for (int i = int(threadIdx.x); i < SIDE * DEPTH; i += THREADS) {
    const int line = along ? i / DEPTH : i % SIDE, at = along ? i % DEPTH : i / SIDE;
    const int byte = at * int(sizeof(Storage));
    const bool inside = first + line < lines && k + at < depth;
    const Storage value = inside ? x.from[(long long)(first + line) * x.line + (long long)(k + at) * x.depth] : Storage(0);
    *reinterpret_cast<Storage*>(to + Part::offset(line, byte & ~15) + (byte & 15)) = value;
  }
}

// grid (blocks of rows, blocks of columns, matrices), 128 threads, two tiles of shared memory.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    matrix_product(Operand a, Operand b, Storage* c, int rows, int columns, int depth) {
  DYNAMIC_SHARED(memory);
  typedef Matrix<E> P;
  constexpr int MT = WARP_SIDE / 16, BLOCKS = WARP_SIDE / 8;
  const int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
  const int row = int(blockIdx.x) * SIDE, column = int(blockIdx.y) * SIDE;
  const int own_row = warp / 2 * WARP_SIDE, own_column = warp % 2 * WARP_SIDE;
  a.from += (long long)blockIdx.z * a.batch;
  b.from += (long long)blockIdx.z * b.batch;
  c += (long long)blockIdx.z * rows * columns;
  char* right = memory + Part::size(SIDE);
  const smem_t left_at = smem_address(memory) + smem_t(Part::size(own_row) + P::template lane_a<DEPTH>(lane));
  const smem_t right_at = smem_address(right) + smem_t(Part::size(own_column) + P::template lane_b<DEPTH>(lane));
  Real sums[MT][BLOCKS][4];
#pragma unroll
  for (int m = 0; m < MT; ++m) clear(sums[m]);
  for (int k = 0; k < depth; k += DEPTH) {
    load(memory, a, row, rows, k, depth);
    load(right, b, column, columns, k, depth);
    block_sync();
    product_abt<E, DEPTH>(sums, left_at, right_at);
    block_sync();
  }
#pragma unroll
  for (int m = 0; m < MT; ++m)
#pragma unroll
    for (int n = 0; n < BLOCKS; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = row + own_row + 16 * m + lane / 4 + 8 * (i / 2);
        const int s = column + own_column + 8 * n + 2 * (lane % 4) + i % 2;
        if (r < rows && s < columns) c[(long long)r * columns + s] = rounded<E>(sums[m][n][i]);
      }
}
