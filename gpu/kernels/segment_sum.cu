// Sums by segments: result[r, c] = sum of updates[j, c] over the j with keys[j] = r, where `order` sorts the keys.
//
// Each sum has one block as its owner: PARTS threads of a column add every PARTS-th entry, and their sums are added in
// a fixed order, so that the bits are the same in every run. No sum is a difference of cumulative sums, whose
// rounding errors grow with all earlier entries.
//
// `segment_sum_unsorted` needs no order: the first entry of a segment searches for the others. This compares all
// pairs of entries, which for thousands of entries costs less than the launches of a sort.
//
// Constants pasted in front of this file: `typedef Bf16 | Fp16 | Fp32 | Fp64 E`, COLUMNS (a power of 2 up to 256).

typedef E::Storage Storage;
constexpr int PARTS = 256 / COLUMNS;

// The first place in the order whose key is at least `key`.
DEVICE long long first_place(const long long* keys, const long long* order, long long count, long long key) {
  long long low = 0, high = count;
  while (low < high) {
    const long long middle = (low + high) / 2;
    if (keys[order[middle]] < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The sums of the PARTS threads of a column are added in a fixed order; the first thread stores the result.
DEVICE void store_sum(Real* sums, Real sum, Storage* to, long long column, long long columns) {
  const int thread = int(threadIdx.x), part = thread / COLUMNS;
  sums[thread] = sum;
  block_sync();
  for (int half = PARTS / 2; half > 0; half /= 2) {
    if (part < half) sums[thread] += sums[thread + half * COLUMNS];
    block_sync();
  }
  if (part == 0 && column < columns) to[column] = rounded<E>(sums[thread]);
  block_sync();
}

// grid (rows if by_row, else count, ceil(columns / COLUMNS) or less), 256 threads, 256 Real of shared memory.
// If there are more rows than entries, there is a block for each entry, and the block of the first entry of a
// segment computes its sum; `result` must be 0 before.
extern "C" __global__ void __launch_bounds__(256, 4)
    segment_sum(const long long* keys, const long long* order, const Storage* updates, Storage* result,
                long long count, long long columns, int by_row) {
  DYNAMIC_SHARED(shared);
  Real* sums = reinterpret_cast<Real*>(shared);
  const int thread = int(threadIdx.x), part = thread / COLUMNS;
  const long long at = blockIdx.x, row = by_row ? at : keys[order[at]];
  if (!by_row && at > 0 && keys[order[at - 1]] == row) return;
  const long long start = by_row ? first_place(keys, order, count, row) : at;
  const long long end = first_place(keys, order, count, row + 1);
  if (start == end) return;
  for (long long first = blockIdx.y * (long long)COLUMNS; first < columns; first += gridDim.y * (long long)COLUMNS) {
    const long long column = first + thread % COLUMNS;
    Real sum = 0;
    if (column < columns)
      for (long long j = start + part; j < end; j += PARTS) sum += unpack<E>(updates[order[j] * columns + column]);
    store_sum(sums, sum, result + row * columns, column, columns);
  }
}

// grid (count, ceil(columns / COLUMNS) or less), 256 threads, 256 Real of shared memory; `result` must be 0 before.
extern "C" __global__ void __launch_bounds__(256, 4)
    segment_sum_unsorted(const long long* keys, const Storage* updates, Storage* result, long long count,
                         long long columns) {
  DYNAMIC_SHARED(shared);
  Real* sums = reinterpret_cast<Real*>(shared);
  const int thread = int(threadIdx.x), part = thread / COLUMNS;
  const long long at = blockIdx.x, row = keys[at];
  int* met = reinterpret_cast<int*>(shared);
  if (thread == 0) *met = 0;
  block_sync();
  for (long long j = thread; j < at; j += 256)
    if (keys[j] == row) *met = 1;
  block_sync();
  if (*met) return;
  block_sync();
  for (long long first = blockIdx.y * (long long)COLUMNS; first < columns; first += gridDim.y * (long long)COLUMNS) {
    const long long column = first + thread % COLUMNS;
    Real sum = 0;
    if (column < columns)
      for (long long j = at + part; j < count; j += PARTS)
        if (keys[j] == row) sum += unpack<E>(updates[j * columns + column]);
    store_sum(sums, sum, result + row * columns, column, columns);
  }
}
