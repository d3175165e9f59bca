// One step of an optimizer for all parameters: gradients are unscaled and clipped by their common norm, and one
// kernel changes every parameter. No number of a step comes from the host, so that a recorded graph does the same
// work in every step.
//
// Constants pasted in front of this file: `typedef Bf16 | Fp16 | Fp32 | Fp64 E` (of gradients and copies), PIECES,
// and the numbers of the rule (`symad.gpu.training.optimizer`).

typedef E::Storage Storage;
constexpr int THREADS = 256, CHUNK = 4 * THREADS;  // elements of a block

// A parameter: its gradient, its place in the flat arrays, and the first block that works on it.
struct Piece {
  const Storage* gradient;
  long long begin, count;
  int first, decays;
};
struct Pieces {
  Piece at[PIECES];
};

// The state that one step leaves for the next.
struct State {
  double number, updates, since, scale, norm, skipped;  // steps; those not skipped; those since the scale changed
};

DEVICE const Piece& piece_of(const Pieces& pieces, int count) {
  int k = 0;
  while (k + 1 < count && int(blockIdx.x) >= pieces.at[k + 1].first) ++k;
  return pieces.at[k];
}

// The sum of a number over all threads, in a fixed order; every thread gets the result.
DEVICE Real block_total(Real x, Real* shared) {
  const int thread = int(threadIdx.x);
  shared[thread] = x;
  block_sync();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (thread < half) shared[thread] += shared[thread + half];
    block_sync();
  }
  const Real total = shared[0];
  block_sync();
  return total;
}

DEVICE Real norm_squared(const Real* parts, int blocks, Real* shared) {
  Real sum = 0;
  for (int k = int(threadIdx.x); k < blocks; k += THREADS) sum += parts[k];
  return block_total(sum, shared);
}

DEVICE bool is_finite(Real x) { return x - x == 0; }

// grid (blocks of all pieces): parts[offset + block] is the sum of g² over a block's elements.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
    gradient_squares(Pieces pieces, int count, const State* state, Real* parts, int offset) {
  DYNAMIC_SHARED(memory);
  Real* shared = reinterpret_cast<Real*>(memory);
  const Piece& piece = piece_of(pieces, count);
  const Real back = Real(1 / state->scale);
  const long long start = (long long)(int(blockIdx.x) - piece.first) * CHUNK;
  Real sum = 0;
  for (int k = int(threadIdx.x); k < CHUNK && start + k < piece.count; k += THREADS) {
    const Real g = unpack<E>(piece.gradient[start + k]) * back;
    sum += g * g;
  }
  const Real total = block_total(sum, shared);
  if (threadIdx.x == 0) parts[offset + int(blockIdx.x)] = total;
}

// grid as `gradient_squares`. A step whose gradients are not all finite changes nothing. `copy` holds the parameters in
// the type of the gradients if that differs from the type of `values`, else it is null.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
    update_parameters(Pieces pieces, int count, const State* state, const Real* parts, int blocks, const double* factors,
           Real* values, Real* first, Real* second, Storage* copy) {
  DYNAMIC_SHARED(memory);
  Real* shared = reinterpret_cast<Real*>(memory);
  const Real squared = norm_squared(parts, blocks, shared);
  if (!is_finite(squared)) return;
  const Piece& piece = piece_of(pieces, count);
  const double norm = sqrt(double(squared)), t = state->updates + 1;
  const Real back = Real((CLIP > 0 && norm > CLIP ? CLIP / norm : 1) / state->scale);
  const Real rate = Real(RATE * (factors ? factors[(long long)state->number] : 1));
  const Real unbiased1 = Real(1 - pow(BETA1, t)), unbiased2 = Real(1 - pow(BETA2, t));
  const long long start = (long long)(int(blockIdx.x) - piece.first) * CHUNK;
  for (int k = int(threadIdx.x); k < CHUNK && start + k < piece.count; k += THREADS) {
    const long long i = piece.begin + start + k;
    const Real theta = values[i];
    const Real g = unpack<E>(piece.gradient[start + k]) * back + Real(PENALTY) * theta;
#if RULE_ADAM
    const Real m = first[i] = Real(BETA1) * first[i] + Real(1 - BETA1) * g;
    const Real v = second[i] = Real(BETA2) * second[i] + Real(1 - BETA2) * g * g;
    const Real size = sqrt(v / unbiased2) + Real(EPSILON);
    Real move = m == 0 && size == 0 ? Real(0) : m / unbiased1 / size;
    if (piece.decays) move += Real(DECAY) * theta;
#else
    const Real v = MOMENTUM > 0 ? first[i] = Real(MOMENTUM) * first[i] + g : g;
    const Real move = NESTEROV ? g + Real(MOMENTUM) * v : v;
#endif
    const Real next = values[i] = theta - rate * move;
    if (copy) copy[i] = rounded<E>(next);
  }
}

// One block, after all of `update_parameters`: the counters, and the factor of the loss, which decreases after a
// skipped step and increases after INTERVAL steps that were not skipped; `seed` is the factor for the loss.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    count_step(State* state, const Real* parts, int blocks, Storage* seed) {
  DYNAMIC_SHARED(memory);
  const Real squared = norm_squared(parts, blocks, reinterpret_cast<Real*>(memory));
  if (threadIdx.x) return;
  const bool good = is_finite(squared);
  state->number += 1;
  state->norm = sqrt(double(squared));
  state->updates += good;
  state->skipped += !good;
  if (DYNAMIC) {
    state->since = good ? state->since + 1 : 0;
    if (!good) state->scale *= BACKOFF;
    if (state->since >= INTERVAL) {
      state->since = 0;
      if (state->scale * GROWTH <= LARGEST) state->scale *= GROWTH;
    }
    *seed = rounded<E>(Real(state->scale));
  }
}
