// Products of a step of a loop: Σ_k left[n, k] right[k, c] for the elements of a tile of ROWS × COLUMNS threads.
//
// Constants pasted in front of this file: `typedef Bf16 | Fp16 | Fp32 | Fp64 E`, ROWS, COLUMNS, DEPTH, ARRAYS.

typedef E::Storage Storage;
constexpr int THREADS = ROWS * COLUMNS;
constexpr int PITCH = DEPTH + 1;  // an odd number of words per row, so that no two threads of a warp share a bank

// An array: its beginning, and the distances in elements from step to step and along its axes.
struct Array {
  const void* place;
  long long step, axis[4];
};
struct Arrays {
  Array at[ARRAYS];
};

DEVICE const Storage* place(const Array& array, long long t) { return (const Storage*)array.place + t * array.step; }

// A factor: the distances between rows (of the left one) or columns (of the right one), and along the sum.
struct Factor {
  const Storage* place;
  long long across, deep;
};

// The sums of some products that share their left factor. All threads of a block must call this together.
template <int COUNT>
DEVICE void add_products(Real (&sum)[COUNT], Factor left, const Factor (&right)[COUNT], int depth, long long rows,
                         long long columns, Real* shared) {
  const int thread = int(threadIdx.x), column = thread % COLUMNS, row = thread / COLUMNS;
  Real* other = shared + ROWS * PITCH;
  for (int first = 0; first < depth; first += DEPTH) {
    for (int i = thread; i < ROWS * DEPTH; i += THREADS) {
      const int r = i / DEPTH, k = i % DEPTH;
      const bool inside = r < rows && first + k < depth;
      shared[r * PITCH + k] = inside ? unpack<E>(left.place[r * left.across + (first + k) * left.deep]) : Real(0);
    }
#pragma unroll
    for (int p = 0; p < COUNT; ++p) {
      const bool along = right[p].deep == 1;  // neighboring threads read neighboring elements
      for (int i = thread; i < COLUMNS * DEPTH; i += THREADS) {
        const int c = along ? i / DEPTH : i % COLUMNS, k = along ? i % DEPTH : i / COLUMNS;
        const bool inside = c < columns && first + k < depth;
        const Storage* from = right[p].place + c * right[p].across + (first + k) * right[p].deep;
        other[(p * COLUMNS + c) * PITCH + k] = inside ? unpack<E>(*from) : Real(0);
      }
    }
    block_sync();
#pragma unroll 4
    for (int k = 0; k < DEPTH; ++k) {
      const Real x = shared[row * PITCH + k];
#pragma unroll
      for (int p = 0; p < COUNT; ++p) sum[p] += x * other[(p * COLUMNS + column) * PITCH + k];
    }
    block_sync();
  }
}
