// The calls of CUDA's runtime that a saved .cu file makes, with memory of the CPU and kernels run by cuda_shim.h.
#pragma once
#include "cuda_shim.h"

#include <cstring>

#define __shared__ static  // blocks run one after another
typedef int cudaError_t;
typedef struct CUstream_st* cudaStream_t;
enum { cudaSuccess = 0, cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

inline int& allowed_shared() {
  static int bytes = 49152;
  return bytes;
}
template <class... P>
cudaError_t cudaFuncSetAttribute(void (*)(P...), int, int bytes) {
  allowed_shared() = bytes;
  return 0;
}
template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t) {
  const unsigned g[] = {grid.x, grid.y, grid.z}, b[] = {block.x, block.y, block.z};
  const size_t sizes[] = {sizeof(P)..., 0};
  if (shared > size_t(allowed_shared())) return 1;
  allowed_shared() = 49152;
  const char* message = shim::launch(kernel, g, b, shared, arguments, sizes, sizeof...(P), 0, 1);
  if (message != nullptr) fprintf(stderr, "%s\n", message);
  return message == nullptr ? 0 : 700;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  return 0;
}
inline cudaError_t cudaGetSymbolAddress(void** found, const void* symbol) {
  *found = const_cast<void*>(symbol);
  return 0;
}
