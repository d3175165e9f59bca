// Sums of several arrays over some of their axes in one launch, such as the gradients of all biases.
//
// Each sum has one block as its owner: a thread adds every PARTS-th entry of a column, and these sums are added in a
// fixed order, so that the bits are the same in every run. Constants pasted in front of this file:
// `typedef Bf16 | Fp16 | Fp32 | Fp64 E`, ARRAYS.

typedef E::Storage Storage;
constexpr int LANES = 32, PARTS = 8;

// Element (i, j) of an array: i counts the `count` results, j the `length` summed elements, both in row-major order
// over three axes with the given sizes and strides (in elements).
struct Summed {
  const Storage* from;
  Storage* to;
  long long first, count, length, kept[3], kept_at[3], summed[3], summed_at[3];
};
struct Table {
  Summed at[ARRAYS];
};

DEVICE long long offset(long long i, const long long (&sizes)[3], const long long (&distances)[3]) {
  const long long last = i % sizes[2], rest = i / sizes[2];
  return last * distances[2] + rest % sizes[1] * distances[1] + rest / sizes[1] * distances[0];
}

// grid (blocks of all arrays): those of array k begin at block `first` of it.
extern "C" __global__ void __launch_bounds__(LANES * PARTS, 1)
    sums(Table table, int arrays) {
  DYNAMIC_SHARED(memory);
  Real* shared = reinterpret_cast<Real*>(memory);
  const int thread = int(threadIdx.x), lane = thread % LANES, part = thread / LANES;
  int k = 0;
  while (k + 1 < arrays && blockIdx.x >= table.at[k + 1].first) ++k;
  const Summed& a = table.at[k];
  const long long i = (blockIdx.x - a.first) * LANES + lane;
  Real sum = 0;
  if (i < a.count) {
    const Storage* from = a.from + offset(i, a.kept, a.kept_at);
    for (long long j = part; j < a.length; j += PARTS) sum += unpack<E>(from[offset(j, a.summed, a.summed_at)]);
  }
  shared[thread] = sum;
  block_sync();
  for (int half = PARTS / 2; half > 0; half /= 2) {
    if (part < half) shared[thread] += shared[thread + half * LANES];
    block_sync();
  }
  if (part == 0 && i < a.count) a.to[i] = rounded<E>(shared[thread]);
}
