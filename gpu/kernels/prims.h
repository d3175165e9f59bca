// Device primitives: the only file with PTX, and the only one with a twin for the CPU (SYMAD_CPU, see
// tests/gpu/shim/cuda_shim.h). No header is included, so NVRTC needs no include path.
#ifndef SYMAD_PRIMS
#define SYMAD_PRIMS

#ifndef SYMAD_REAL
#define SYMAD_REAL float
#endif
typedef SYMAD_REAL Real;         // the type of scores, sums and statistics
typedef unsigned short u16;      // bf16 and fp16 are stored as 16-bit integers
typedef unsigned int u32;

#define DEVICE __device__ __forceinline__

struct Bf16 { typedef u16 Storage; };
struct Fp16 { typedef u16 Storage; };
struct Fp32 { typedef float Storage; };       // multiplied as three tf32 products on tensor cores
struct Fp32Plain { typedef float Storage; };  // multiplied by ordinary fused multiply-adds
struct Fp64 { typedef double Storage; };

// ------------------------------------------------------------------ CPU twins

#ifdef SYMAD_CPU

#define SYMAD_TENSOR_CORES
typedef uintptr_t smem_t;  // an address in shared memory
#define DYNAMIC_SHARED(name) char* name = shim::m.shared
DEVICE smem_t smem_address(const void* p) { return reinterpret_cast<smem_t>(p); }
DEVICE void block_sync() { __syncthreads(); }
template <int BYTES>
DEVICE void cp_async(smem_t to, const void* from, bool valid) {
  shim::async_copy(reinterpret_cast<void*>(to), from, BYTES, valid ? BYTES : 0);
}
DEVICE void cp_async_commit() { shim::async_commit(); }
template <int PENDING>
DEVICE void cp_async_wait() { shim::async_wait(PENDING); }
template <class V>
DEVICE V load_shared(smem_t from) { return *reinterpret_cast<const V*>(from); }
template <class V>
DEVICE void store_shared(smem_t to, V value) { *reinterpret_cast<V*>(to) = value; }
DEVICE void ldmatrix(u32 (&r)[4], smem_t row) { shim::ldmatrix(r, reinterpret_cast<void*>(row), false); }
DEVICE void ldmatrix_trans(u32 (&r)[4], smem_t row) { shim::ldmatrix(r, reinterpret_cast<void*>(row), true); }
DEVICE void mma_bf16(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  shim::mma_16816("mma.m16n8k16.bf16", c, a, b, shim::DecodeBf16{});
}
DEVICE void mma_fp16(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  shim::mma_16816("mma.m16n8k16.f16", c, a, b, shim::DecodeFp16{});
}
DEVICE void mma_tf32(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
  shim::mma_1688("mma.m16n8k8.tf32", c, a, b, shim::DecodeTf32{});
}
#ifdef SYMAD_SM80  // the instruction of compute capability 8.x
DEVICE void mma_f64_884(double (&c)[2], double a, double b) { shim::mma_884(c, a, b); }
#else
DEVICE void mma_f64(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
  shim::mma_1688("mma.m16n8k8.f64", c, a, b, shim::Same{});
}
#endif
DEVICE u32 pack_bf16(float lo, float hi) { return shim::to_bf16(lo) | u32(shim::to_bf16(hi)) << 16; }
DEVICE u32 pack_fp16(float lo, float hi) { return shim::to_fp16(lo) | u32(shim::to_fp16(hi)) << 16; }
DEVICE float unpack_fp16(u16 x) { return shim::from_fp16(x); }
DEVICE float exp2_fast(float x) { return exp2f(x); }
DEVICE float tanh_fast(float x) { return tanhf(x); }
DEVICE int opaque(int x) { return x; }
DEVICE void add_global2(float* to, float x, float y) { to[0] += x; to[1] += y; }
DEVICE void add_global2(double* to, double x, double y) { to[0] += x; to[1] += y; }

// ------------------------------------------------------------------ PTX

#else

typedef u32 smem_t;
#define DYNAMIC_SHARED(name) extern __shared__ __align__(1024) char name[]
DEVICE smem_t smem_address(const void* p) { return u32(__cvta_generic_to_shared(p)); }
DEVICE void block_sync() { asm volatile("bar.sync 0;" ::: "memory"); }

// Starts an asynchronous copy of BYTES (4, 8 or 16) to shared memory; zeros if not valid.
template <int BYTES>
DEVICE void cp_async(smem_t to, const void* from, bool valid) {
#if __CUDA_ARCH__ < 800
  for (int i = 0; i < BYTES; i += 4) {
    u32 word = valid ? *(const u32*)((const char*)from + i) : 0u;
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to + i), "r"(word) : "memory");
  }
#else
  int size = valid ? BYTES : 0;
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(size));
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES), "r"(size));
#endif
}
#if __CUDA_ARCH__ < 800
DEVICE void cp_async_commit() {}
template <int PENDING>
DEVICE void cp_async_wait() {}
#else
DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;"); }
template <int PENDING>
DEVICE void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }
#endif

template <class V>
DEVICE V load_shared(smem_t from);
template <>
DEVICE float load_shared<float>(smem_t from) {
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from));
  return x;
}
template <>
DEVICE double load_shared<double>(smem_t from) {
  double x;
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(from));
  return x;
}
template <>
DEVICE float2 load_shared<float2>(smem_t from) {
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(from));
  return x;
}
template <>
DEVICE float4 load_shared<float4>(smem_t from) {
  float4 x;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(from));
  return x;
}
template <>
DEVICE double2 load_shared<double2>(smem_t from) {
  double2 x;
  asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x.x), "=d"(x.y) : "r"(from));
  return x;
}
DEVICE void store_shared(smem_t to, u32 x) { asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(x) : "memory"); }
DEVICE void store_shared(smem_t to, float x) { asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(x) : "memory"); }
DEVICE void store_shared(smem_t to, double x) { asm volatile("st.shared.f64 [%0], %1;" ::"r"(to), "d"(x) : "memory"); }

// Four 8x8 matrices of 16-bit elements; lane 8i + r gives the address of row r of matrix i. Lane l receives the
// elements 2(l % 4), 2(l % 4) + 1 of row l / 4; transposed: of column l / 4.
DEVICE void ldmatrix(u32 (&r)[4], smem_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row));
}
DEVICE void ldmatrix_trans(u32 (&r)[4], smem_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row));
}

#if __CUDA_ARCH__ >= 800  // before, only Fp32Plain works
#define SYMAD_TENSOR_CORES
DEVICE void mma_bf16(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
DEVICE void mma_fp16(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
DEVICE void mma_tf32(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
        "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}
#if __CUDA_ARCH__ >= 900
DEVICE void mma_f64(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}
#else
#define SYMAD_SM80
DEVICE void mma_f64_884(double (&c)[2], double a, double b) {
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c[0]), "+d"(c[1]) : "d"(a), "d"(b));
}
#endif

DEVICE u32 pack_bf16(float lo, float hi) {
  u32 d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo));
  return d;
}
DEVICE u32 pack_fp16(float lo, float hi) {
  u32 d;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo));
  return d;
}
#else  // numbers are stored in half precision, and no product is computed in it
// The nearest of the numbers whose last 16 bits are 0, ties to even.
DEVICE u32 to_bf16(float x) {
  const u32 bits = __float_as_uint(x);
  return x != x ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
DEVICE u32 to_fp16(float x) {
  u16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
DEVICE u32 pack_bf16(float lo, float hi) { return to_bf16(lo) | to_bf16(hi) << 16; }
DEVICE u32 pack_fp16(float lo, float hi) { return to_fp16(lo) | to_fp16(hi) << 16; }
#endif
DEVICE float unpack_fp16(u16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
DEVICE float exp2_fast(float x) {  // relative error 2^-22
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float tanh_fast(float x) {  // absolute error 5e-4
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// The same number, about which the compiler can conclude nothing: values computed from it are computed again
// where they are needed, instead of being kept in registers.
DEVICE int opaque(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
DEVICE void add_global2(float* to, float x, float y) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(x), "f"(y) : "memory");
#else
  atomicAdd(to, x);
  atomicAdd(to + 1, y);
#endif
}
DEVICE void add_global2(double* to, double x, double y) {
  atomicAdd(to, x);
  atomicAdd(to + 1, y);
}

#endif  // SYMAD_CPU

// ------------------------------------------------------------------ common to both

#ifdef SYMAD_SM80
// m16n8k8 from four m8n8k4: rows 0-7 and 8-15, then columns 0-3 and 4-7 of a.
DEVICE void mma_f64(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    double part[2] = {c[2 * half], c[2 * half + 1]};
    mma_f64_884(part, a[half], b[0]);
    mma_f64_884(part, a[half + 2], b[1]);
    c[2 * half] = part[0];
    c[2 * half + 1] = part[1];
  }
}
#endif

// 2^x to 1 ulp in 16 instructions, 0 below 2^-1022: x = n + f with |f| <= 1/2, then the polynomial of
// degree 11 closest to 2^f (relative error 3e-18 by Chebyshev interpolation), then n into the exponent.
DEVICE double exp2_fast(double x) {
  const double magic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer in the low bits
  const double inside = fmin(fmax(x, -1022.0), 1023.0), shifted = inside + magic, f = inside - (shifted - magic);
  double p = 4.455817908336064493e-10;
  p = p * f + 7.0741942972885210056e-9;
  p = p * f + 1.0178057087733941105e-7;
  p = p * f + 1.3215432535912376166e-6;
  p = p * f + 1.5252733841556772589e-5;
  p = p * f + 1.5403530463724354209e-4;
  p = p * f + 1.3333558146406470697e-3;
  p = p * f + 9.6181291075872566681e-3;
  p = p * f + 5.5504108664821627039e-2;
  p = p * f + 2.4022650695910159567e-1;
  p = p * f + 6.9314718055994530925e-1;
  p = p * f + 1.0;
  // the low 12 bits of n, at the exponent
  const long long n = (long long)((unsigned long long)__double_as_longlong(shifted) << 52);
  return x < -1022.0 ? 0.0 : __longlong_as_double(__double_as_longlong(p) + n);
}
DEVICE double tanh_fast(double x) { return tanh(x); }
DEVICE float real_log2(float x) { return log2f(x); }
DEVICE double real_log2(double x) { return log2(x); }
DEVICE float real_max(float x, float y) { return fmaxf(x, y); }
DEVICE double real_max(double x, double y) { return fmax(x, y); }
DEVICE float infinity(float) { return __int_as_float(0x7f800000); }
DEVICE double infinity(double) { return double(__int_as_float(0x7f800000)); }
DEVICE int smallest(int a, int b) { return a < b ? a : b; }
DEVICE int largest(int a, int b) { return a > b ? a : b; }

#if SYMAD_ELEMENT_BITS == 16
template <class T>
DEVICE u32 pack(float lo, float hi);
template <>
DEVICE u32 pack<Bf16>(float lo, float hi) { return pack_bf16(lo, hi); }
template <>
DEVICE u32 pack<Fp16>(float lo, float hi) { return pack_fp16(lo, hi); }
#endif

template <class T>
DEVICE Real unpack(typename T::Storage x) { return x; }
template <>
DEVICE Real unpack<Bf16>(u16 x) { return __uint_as_float(u32(x) << 16); }
template <>
DEVICE Real unpack<Fp16>(u16 x) { return unpack_fp16(x); }

// A number as it is stored.
template <class T>
DEVICE typename T::Storage rounded(Real x) {
#if SYMAD_ELEMENT_BITS == 16
  return u16(pack<T>(x, x) & 0xffffu);
#else
  return x;
#endif
}

// The four lanes of a row of a matrix fragment hold its columns.
template <class R>
DEVICE R quad_sum(R x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}
template <class R>
DEVICE R quad_max(R x) {
  x = real_max(x, __shfl_xor_sync(~0u, x, 1));
  return real_max(x, __shfl_xor_sync(~0u, x, 2));
}

// ------------------------------------------------------------------ score text

#ifdef SCORE_PLAIN
struct ScoreArgs;
struct ScoreHead;
struct ScoreRow;
struct ScoreColumn;
struct ScorePair {
  const ScoreArgs& args;
  const ScoreHead& head;
  const ScoreRow& row;
  const ScoreColumn& column;
  int b, h, q, k;
};
#define AT_LEAST_ONE(n) ((n) > 0 ? (n) : 1)
struct ScoreGrad {
  Real t, ds;
  Real row[AT_LEAST_ONE(SCORE_ROWS)], column[AT_LEAST_ONE(SCORE_COLUMNS)];
  Real diagonal[AT_LEAST_ONE(SCORE_DIAGONALS)], pair[AT_LEAST_ONE(SCORE_PAIRS)];
};
enum { TILE_EMPTY = 0, TILE_PARTIAL = 1, TILE_FULL = 2 };
#endif

#endif  // SYMAD_PRIMS
