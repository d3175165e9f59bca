// Runs CUDA kernels on the CPU, one block after another, so that they can be tested without a GPU.
//
// Threads of a block are fibers of one operating-system thread. What hides bugs on a CPU is made as
// hostile as the CUDA model allows: shared memory starts as NaN, cp.async copies at its wait (or at
// once, in the eager schedule), and fibers run in three different orders. ldmatrix and mma wait for
// all 32 lanes and then use the fragment layouts of the PTX ISA (section "warp-level matrix
// instructions"). Misuse stops the launch with a message instead of hanging.
//
// Not emulated: bank conflicts, memory ordering between blocks, register limits, the rounding of
// approximate instructions (they are exact here). The float accumulation of mma is rounded toward
// zero, as tensor cores do it.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#define SYMAD_CPU 1
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; };
struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) int4 { int x, y, z, w; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace shim {

// ---------------------------------------------------------------- fibers

#if defined(__x86_64__)
// Saves the callee-saved registers on the old stack and takes them from the new one (System V ABI).
__attribute__((naked, noinline)) static void switch_stack(void** /*save*/, void* /*next*/) {
  asm volatile(
      "pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
      "movq %rsp, (%rdi)\n\tmovq %rsi, %rsp\n\t"
      "popq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\tret");
}
struct Context { void* sp = nullptr; };
inline void context_switch(Context& from, Context& to) { switch_stack(&from.sp, to.sp); }
inline void context_make(Context& c, char* stack, size_t size, void (*entry)()) {
  uintptr_t top = (reinterpret_cast<uintptr_t>(stack) + size) & ~uintptr_t(15);
  void** sp = reinterpret_cast<void**>(top - 64);
  for (int i = 0; i < 6; ++i) sp[i] = nullptr;
  sp[6] = reinterpret_cast<void*>(entry);  // `ret` leaves sp = top - 8: aligned as after a call
  sp[7] = nullptr;
  c.sp = sp;
}
#else
#include <ucontext.h>
struct Context { ucontext_t u; };
inline void context_switch(Context& from, Context& to) { swapcontext(&from.u, &to.u); }
inline void context_make(Context& c, char* stack, size_t size, void (*entry)()) {
  getcontext(&c.u);
  c.u.uc_stack.ss_sp = stack;
  c.u.uc_stack.ss_size = size;
  c.u.uc_link = nullptr;
  makecontext(&c.u, entry, 0);
}
#endif

enum Schedule { FORWARD = 0, REVERSE = 1, RANDOM = 2 };
constexpr size_t STACK = 256 * 1024;
constexpr int MAX_THREADS = 1024;

struct Copy { void* to; const void* from; int bytes, valid; };

struct Fiber {
  Context context;
  char* stack = nullptr;
  uint3 index;
  int id = 0;
  const char* waiting = nullptr;                  // what it waits for; nullptr: ready or done
  bool done = false;
  std::vector<std::vector<Copy>> groups;          // committed cp.async groups, oldest first
  std::vector<Copy> open;                         // not yet committed
};

struct Warp {
  int lanes = 0, arrived = 0;                     // lanes: those that have not returned
  const char* what = nullptr;                     // the collective in progress
  void* slot[32];
};

struct Machine {
  Fiber fibers[MAX_THREADS];
  Warp warps[MAX_THREADS / 32];
  uint64_t ready[MAX_THREADS / 64];
  Context main;
  Fiber* current = nullptr;
  int threads = 0, alive = 0, at_barrier = 0;
  Schedule schedule = FORWARD;
  uint64_t random = 1;
  char* shared = nullptr;
  uint3 block_index;
  dim3 block_dim, grid_dim;
  void (*body)(void*) = nullptr;
  void* body_arg = nullptr;
  char error[1024] = {0};
};
inline Machine m;

inline void set_ready(int id) { m.ready[id >> 6] |= uint64_t(1) << (id & 63); }
inline void clear_ready(int id) { m.ready[id >> 6] &= ~(uint64_t(1) << (id & 63)); }

// The next fiber to run: lowest, highest, or a random ready one; -1 if none is ready.
inline int pick() {
  int words = (m.threads + 63) / 64;
  if (m.schedule == FORWARD) {
    for (int w = 0; w < words; ++w)
      if (m.ready[w]) return 64 * w + __builtin_ctzll(m.ready[w]);
  } else if (m.schedule == REVERSE) {
    for (int w = words - 1; w >= 0; --w)
      if (m.ready[w]) return 64 * w + 63 - __builtin_clzll(m.ready[w]);
  } else {
    m.random = m.random * 6364136223846793005ull + 1442695040888963407ull;
    int start = int((m.random >> 33) % uint64_t(m.threads));
    for (int i = 0; i < m.threads; ++i) {
      int id = (start + i) % m.threads;
      if (m.ready[id >> 6] >> (id & 63) & 1) return id;
    }
  }
  return -1;
}

inline void resume(Context& from) {
  int id = pick();
  Fiber* next = id < 0 ? nullptr : &m.fibers[id];
  m.current = next;
  Context& to = next ? next->context : m.main;
  if (&to != &from) context_switch(from, to);
}

[[noreturn]] inline void fail(const char* message) {
  if (!m.error[0]) {
    Fiber& f = *m.current;
    snprintf(m.error, sizeof m.error, "%s (block %u,%u,%u, thread %u,%u,%u)", message, m.block_index.x,
             m.block_index.y, m.block_index.z, f.index.x, f.index.y, f.index.z);
  }
  Context& from = m.current->context;
  m.current = nullptr;
  context_switch(from, m.main);
  abort();
}

inline void wait_for(const char* what) {
  Fiber& f = *m.current;
  f.waiting = what;
  clear_ready(f.id);
  resume(f.context);
}

inline void wake(int id) {
  m.fibers[id].waiting = nullptr;
  set_ready(id);
}

inline void open_barrier() {
  m.at_barrier = 0;
  for (int id = 0; id < m.threads; ++id)
    if (m.fibers[id].waiting && !strcmp(m.fibers[id].waiting, "__syncthreads")) wake(id);
}

inline void sync_block() {
  if (++m.at_barrier == m.alive) {
    m.current->waiting = "__syncthreads";
    open_barrier();
    if (m.schedule != FORWARD) resume(m.current->context);
  } else {
    wait_for("__syncthreads");
  }
}

inline void fiber_entry() {
  m.body(m.body_arg);
  Fiber& f = *m.current;
  f.done = true;
  clear_ready(f.id);
  Warp& w = m.warps[f.id / 32];
  --w.lanes;
  w.slot[f.id % 32] = nullptr;
  if (w.arrived) fail("a lane returned while its warp waits in a collective operation");
  if (--m.alive > 0 && m.at_barrier == m.alive) open_barrier();
  resume(f.context);
}

// Runs `all(slots)` once, when every lane of the warp has called with its operands.
template <class F>
inline void collective(const char* what, void* mine, F all) {
  Fiber& f = *m.current;
  Warp& w = m.warps[f.id / 32];
  if (w.arrived == 0) w.what = what;
  if (w.what != what && strcmp(w.what, what)) {
    static char text[200];
    snprintf(text, sizeof text, "a warp is split between %s and %s", w.what, what);
    fail(text);
  }
  w.slot[f.id % 32] = mine;
  if (++w.arrived < w.lanes) return wait_for(what);
  all(w.slot);
  w.arrived = 0;
  int first = f.id / 32 * 32;
  for (int id = first; id < first + 32 && id < m.threads; ++id)
    if (!m.fibers[id].done) wake(id);
  if (m.schedule != FORWARD) resume(f.context);
}

// ---------------------------------------------------------------- launching

inline void describe_deadlock() {
  int n = snprintf(m.error, sizeof m.error, "deadlock in block %u,%u,%u:", m.block_index.x,
                   m.block_index.y, m.block_index.z);
  int shown = 0;
  for (int id = 0; id < m.threads && shown < 8; ++id) {
    Fiber& f = m.fibers[id];
    if (f.done) continue;
    n += snprintf(m.error + n, sizeof m.error - n, " thread %d waits for %s;", id, f.waiting);
    ++shown;
  }
}

// `bytes` of memory aligned to 1024 inside an exactly sized allocation, so that AddressSanitizer sees overruns.
struct Shared {
  char* raw;
  char* base;
  explicit Shared(size_t bytes) {
    size_t padded = (bytes + 1023) / 1024 * 1024;
    raw = static_cast<char*>(malloc(padded + 1024));
    base = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(raw) + 1023) & ~uintptr_t(1023));
    memset(base, 0xff, padded);
  }
  ~Shared() { free(raw); }
};

inline bool run_block(size_t shared_bytes) {
  Shared shared(shared_bytes);
  m.shared = shared.base;
  m.alive = m.threads;
  m.at_barrier = 0;
  memset(m.ready, 0, sizeof m.ready);
  for (int w = 0; w < (m.threads + 31) / 32; ++w) m.warps[w] = Warp{};
  for (int id = 0; id < m.threads; ++id) {
    Fiber& f = m.fibers[id];
    if (!f.stack) f.stack = static_cast<char*>(malloc(STACK));
    f.id = id;
    f.index = {id % m.block_dim.x, id / m.block_dim.x % m.block_dim.y,
               id / m.block_dim.x / m.block_dim.y};
    f.done = false;
    f.waiting = nullptr;
    f.groups.clear();
    f.open.clear();
    ++m.warps[id / 32].lanes;
    context_make(f.context, f.stack, STACK, fiber_entry);
    set_ready(id);
  }
  resume(m.main);
  if (!m.error[0] && m.alive > 0) describe_deadlock();
  return !m.error[0];
}

template <class... A, size_t... I>
inline void call(void (*kernel)(A...), void** args, std::index_sequence<I...>) {
  kernel(*static_cast<std::remove_reference_t<A>*>(args[I])...);
}

// Runs every block of a grid; returns nullptr or what went wrong. `sizes` are the bytes of each argument.
template <class... A>
inline const char* launch(void (*kernel)(A...), const unsigned* grid, const unsigned* block,
                          size_t shared_bytes, void** args, const size_t* sizes, size_t count,
                          int schedule, unsigned seed) {
  m.error[0] = 0;
  const size_t expected[] = {sizeof(A)..., 0};
  if (count != sizeof...(A)) {
    snprintf(m.error, sizeof m.error, "the kernel takes %zu arguments, %zu were given", sizeof...(A), count);
    return m.error;
  }
  for (size_t i = 0; i < count; ++i)
    if (sizes[i] != expected[i]) {
      snprintf(m.error, sizeof m.error, "argument %zu has %zu bytes, the kernel takes %zu", i, sizes[i], expected[i]);
      return m.error;
    }
  struct Call { void (*kernel)(A...); void** args; } it{kernel, args};
  m.body = [](void* p) {
    auto* c = static_cast<Call*>(p);
    call(c->kernel, c->args, std::index_sequence_for<A...>{});
  };
  m.body_arg = &it;
  m.schedule = Schedule(schedule);
  m.random = seed;
  m.block_dim = {block[0], block[1], block[2]};
  m.grid_dim = {grid[0], grid[1], grid[2]};
  m.threads = int(block[0] * block[1] * block[2]);
  if (m.threads < 1 || m.threads > MAX_THREADS) return "a block has 1 to 1024 threads";
  unsigned blocks = grid[0] * grid[1] * grid[2];
  for (unsigned n = 0; n < blocks; ++n) {
    unsigned i = schedule == REVERSE ? blocks - 1 - n : n;
    m.block_index = {i % grid[0], i / grid[0] % grid[1], i / grid[0] / grid[1]};
    if (!run_block(shared_bytes)) return m.error;
  }
  return nullptr;
}

// ---------------------------------------------------------------- cp.async

inline void perform(const Copy& c) {
  memcpy(c.to, c.from, size_t(c.valid));
  memset(static_cast<char*>(c.to) + c.valid, 0, size_t(c.bytes - c.valid));
}
inline void async_copy(void* to, const void* from, int bytes, int valid) {
  if (reinterpret_cast<uintptr_t>(to) % bytes || (valid && reinterpret_cast<uintptr_t>(from) % bytes))
    fail("cp.async address is not aligned to its size");
  Copy c{to, from, bytes, valid};
  if (m.schedule == REVERSE) perform(c);
  else m.current->open.push_back(c);
}
inline void async_commit() {
  m.current->groups.push_back(std::move(m.current->open));
  m.current->open.clear();
}
inline void async_wait(int pending) {
  auto& groups = m.current->groups;
  while (int(groups.size()) > pending) {
    for (const Copy& c : groups.front()) perform(c);
    groups.erase(groups.begin());
  }
}

// ---------------------------------------------------------------- matrix instructions

inline int lane() { return m.current->id % 32; }
// Tensor cores truncate when they accumulate in float.
inline float toward_zero(double x) {
  float y = float(x);
  return std::fabs(double(y)) > std::fabs(x) ? std::nextafterf(y, 0.0f) : y;
}
inline float from_bf16(uint16_t x) {
  uint32_t bits = uint32_t(x) << 16;
  float y;
  memcpy(&y, &bits, 4);
  return y;
}
inline uint16_t to_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  if (x != x) return 0x7fff;
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float from_fp16(uint16_t x) {
  _Float16 y;
  memcpy(&y, &x, 2);
  return float(y);
}
inline uint16_t to_fp16(float x) {
  _Float16 y = _Float16(x);
  uint16_t bits;
  memcpy(&bits, &y, 2);
  return bits;
}
inline float from_tf32(float x) {  // the instruction ignores the low 13 bits
  uint32_t bits;
  memcpy(&bits, &x, 4);
  bits &= 0xffffe000u;
  memcpy(&x, &bits, 4);
  return x;
}

// ldmatrix.m8n8.x4[.trans].b16: lane 8i + r gives the address of row r of matrix i.
inline void ldmatrix(uint32_t (&out)[4], const void* row, bool transposed) {
  struct Mine { uint32_t* out; const uint16_t* row; } mine{out, static_cast<const uint16_t*>(row)};
  if (reinterpret_cast<uintptr_t>(row) % 16) fail("ldmatrix row is not 16-byte aligned");
  collective(transposed ? "ldmatrix.trans" : "ldmatrix", &mine, [transposed](void** slot) {
    for (int l = 0; l < 32; ++l)
      for (int i = 0; i < 4; ++i) {
        uint32_t pair[2];
        for (int e = 0; e < 2; ++e) {
          int r = transposed ? l % 4 * 2 + e : l / 4, c = transposed ? l / 4 : l % 4 * 2 + e;
          pair[e] = static_cast<Mine*>(slot[8 * i + r])->row[c];
        }
        static_cast<Mine*>(slot[l])->out[i] = pair[0] | pair[1] << 16;
      }
  });
}

// c[16x8] += a[16xK] b[Kx8], given where lane l's operand registers lie in a, b and c.
template <int M, int K, class Acc, class Load>
inline void mma(const char* what, void* mine, Load load) {
  collective(what, mine, [load](void** slot) {
    double a[M][K], b[K][8];
    Acc* c[M][8];
    for (int l = 0; l < 32; ++l) load(l, slot[l], a, b, c);
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < 8; ++j) {
        double sum = *c[i][j];
        for (int k = 0; k < K; ++k) sum += a[i][k] * b[k][j];
        if constexpr (sizeof(Acc) == 4) *c[i][j] = toward_zero(sum);
        else *c[i][j] = sum;
      }
  });
}

template <class Decode>
inline void mma_16816(const char* what, float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Decode) {
  struct Mine { const uint32_t *a, *b; float* c; } mine{a, b, c};
  mma<16, 16, float>(what, &mine, [](int l, void* p, auto& A, auto& B, auto& C) {
    auto* o = static_cast<Mine*>(p);
    int g = l / 4, t = l % 4;
    for (int i = 0; i < 4; ++i)
      for (int e = 0; e < 2; ++e)
        A[g + 8 * (i & 1)][2 * t + e + 8 * (i >> 1)] = Decode{}(uint16_t(o->a[i] >> (16 * e)));
    for (int i = 0; i < 2; ++i)
      for (int e = 0; e < 2; ++e) B[2 * t + e + 8 * i][g] = Decode{}(uint16_t(o->b[i] >> (16 * e)));
    for (int i = 0; i < 4; ++i) C[g + 8 * (i >> 1)][2 * t + (i & 1)] = o->c + i;
  });
}
struct DecodeBf16 { float operator()(uint16_t x) const { return from_bf16(x); } };
struct DecodeFp16 { float operator()(uint16_t x) const { return from_fp16(x); } };

// m16n8k8 with 32- or 64-bit elements: tf32 (sm_80) and f64 (sm_90) share one layout.
template <class T, class Decode>
inline void mma_1688(const char* what, T (&c)[4], const T (&a)[4], const T (&b)[2], Decode) {
  struct Mine { const T *a, *b; T* c; } mine{a, b, c};
  mma<16, 8, T>(what, &mine, [](int l, void* p, auto& A, auto& B, auto& C) {
    auto* o = static_cast<Mine*>(p);
    int g = l / 4, t = l % 4;
    for (int i = 0; i < 4; ++i) A[g + 8 * (i & 1)][t + 4 * (i >> 1)] = Decode{}(o->a[i]);
    for (int i = 0; i < 2; ++i) B[t + 4 * i][g] = Decode{}(o->b[i]);
    for (int i = 0; i < 4; ++i) C[g + 8 * (i >> 1)][2 * t + (i & 1)] = o->c + i;
  });
}
struct DecodeTf32 { float operator()(float x) const { return from_tf32(x); } };
struct Same { double operator()(double x) const { return x; } };

// m8n8k4 f64 (sm_80).
inline void mma_884(double (&c)[2], double a, double b) {
  struct Mine { double a, b; double* c; } mine{a, b, c};
  mma<8, 4, double>("mma.m8n8k4.f64", &mine, [](int l, void* p, auto& A, auto& B, auto& C) {
    auto* o = static_cast<Mine*>(p);
    int g = l / 4, t = l % 4;
    A[g][t] = o->a;
    B[t][g] = o->b;
    C[g][2 * t] = o->c;
    C[g][2 * t + 1] = o->c + 1;
  });
}

template <class T>
inline T shuffle(const char* what, T value, int source) {
  struct Mine { T in, out; int source; } mine{value, value, source & 31};
  collective(what, &mine, [](void** slot) {
    for (int l = 0; l < 32; ++l)
      if (auto* to = static_cast<Mine*>(slot[l]))
        if (auto* from = static_cast<Mine*>(slot[to->source])) to->out = from->in;
  });
  return mine.out;
}
inline unsigned vote(bool predicate) {
  struct Mine { bool in; unsigned out; } mine{predicate, 0};
  collective("vote", &mine, [](void** slot) {
    unsigned bits = 0;
    for (int l = 0; l < 32; ++l)
      if (slot[l] && static_cast<Mine*>(slot[l])->in) bits |= 1u << l;
    for (int l = 0; l < 32; ++l)
      if (slot[l]) static_cast<Mine*>(slot[l])->out = bits;
  });
  return mine.out;
}

}  // namespace shim

// ---------------------------------------------------------------- CUDA's names

#define threadIdx (shim::m.current->index)
#define blockIdx (shim::m.block_index)
#define blockDim (shim::m.block_dim)
#define gridDim (shim::m.grid_dim)
template <class T>
inline T __shfl_xor_sync(unsigned, T value, int bits) {
  return shim::shuffle("__shfl_xor_sync", value, shim::lane() ^ bits);
}
template <class T>
inline T __shfl_sync(unsigned, T value, int from) { return shim::shuffle("__shfl_sync", value, from); }
template <class T>
inline T __shfl_down_sync(unsigned, T value, int by) {
  int from = shim::lane() + by;
  return shim::shuffle("__shfl_down_sync", value, from < 32 ? from : shim::lane());
}
inline void __syncthreads() { shim::sync_block(); }
inline void __syncwarp(unsigned = ~0u) {
  int nothing = 0;
  shim::collective("__syncwarp", &nothing, [](void**) {});
}
inline bool __any_sync(unsigned, bool p) { return shim::vote(p) != 0; }
inline bool __all_sync(unsigned, bool p) { return shim::vote(!p) == 0; }
inline unsigned __ballot_sync(unsigned, bool p) { return shim::vote(p); }
template <class T>
inline T atomicAdd(T* to, T value) {
  T old = *to;
  *to = old + value;
  return old;
}
template <class T>
inline T __ldg(const T* p) { return *p; }
inline float __int_as_float(int x) { float y; memcpy(&y, &x, 4); return y; }
inline int __float_as_int(float x) { int y; memcpy(&y, &x, 4); return y; }
inline float __uint_as_float(unsigned x) { float y; memcpy(&y, &x, 4); return y; }
inline unsigned __float_as_uint(float x) { unsigned y; memcpy(&y, &x, 4); return y; }
inline long long __double_as_longlong(double x) { long long y; memcpy(&y, &x, 8); return y; }
inline double __longlong_as_double(long long x) { double y; memcpy(&y, &x, 8); return y; }
inline float __fmaf_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
template <class T>
inline T min(T a, T b) { return a < b ? a : b; }
template <class T>
inline T max(T a, T b) { return a > b ? a : b; }
