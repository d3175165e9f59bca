// Tiles of matrices in shared memory.

// Rows of COLS elements, stored at a pitch of 128 bytes; their 16-byte chunks are permuted by the row (XOR), so
// that the accesses below use all banks.
template <class T, int COLS>
struct Tile {
  typedef typename T::Storage Storage;
  static constexpr int BYTES = COLS * int(sizeof(Storage));
  static constexpr int PITCH = BYTES <= 32 ? 32 : BYTES <= 64 ? 64 : (BYTES + 127) / 128 * 128;
  static constexpr int PER_CHUNK = 16 / int(sizeof(Storage));

  DEVICE static constexpr int size(int rows) { return rows * PITCH; }

  DEVICE static int permutation(int row) {
    if (sizeof(Storage) == 8) return ((row ^ row >> 1) & 1) << 6 | (row >> 2 & 1) << 5;
    if (PITCH == 32) return (row >> 2 & 1) << 4;
    if (PITCH == 64) return (row >> 1 & 3) << 4;
    return (row & 7) << 4;
  }
  // Offset of a 16-byte chunk. The permutation of a row depends on row % 8 only.
  DEVICE static int offset(int row, int byte) { return row * PITCH + (byte ^ permutation(row)); }
// The address of the chunk `row` (a multiple of 8) rows down and `byte` (a multiple of 32) bytes to the right.
  DEVICE static smem_t move(smem_t from, int row, int byte) {
    return (from ^ smem_t(byte & 127)) + smem_t(byte & ~127) + smem_t(row * PITCH);
  }
};

// Starts copying 16 bytes to shared memory; zeros if not valid. With SYMAD_UNALIGNED the address is a multiple of
// the element's size only, for which a copy of 16 bytes would be an error.
template <class T>
DEVICE void copy_chunk(smem_t to, const typename T::Storage* from, bool valid) {
#ifndef SYMAD_UNALIGNED
  cp_async<16>(to, from, valid);
#elif SYMAD_ELEMENT_BITS == 16
#pragma unroll
  for (int i = 0; i < 4; ++i)
    store_shared(to + smem_t(4 * i), u32(valid ? u32(from[2 * i]) | u32(from[2 * i + 1]) << 16 : 0u));
#else
  constexpr int SIZE = int(sizeof(typename T::Storage));
#pragma unroll
  for (int i = 0; i < 16 / SIZE; ++i) cp_async<SIZE>(to + smem_t(SIZE * i), valid ? from + i : from, valid);
#endif
}

// The most copies of a thread per tile that are written out one after the other; more are a loop. The compiler
// computes the addresses of copies that are written out in advance, in registers that the sums of a kernel need: with
// 48 copies, the sums along diagonals in fp64 with d = 128 spill 192 bytes, with a loop none (NVRTC 13.5, sm_90).
constexpr int MAX_COPIES = 32;

// Starts copying rows [row0, row0 + ROWS) of a matrix with `rows` rows, `pitch` elements apart, into a
// tile; zeros outside of the matrix (row0 may be negative) and beyond `width` columns.
template <class T, int COLS, int ROWS, int THREADS>
DEVICE void load_tile(smem_t tile, const typename T::Storage* from, int row0, int rows, int pitch, int width) {
  typedef Tile<T, COLS> Shape;
  constexpr int CHUNKS = Shape::BYTES / 16, TOTAL = ROWS * CHUNKS;
  int thread = opaque(int(threadIdx.x));  // a few instructions per tile instead of registers all the time
  if constexpr (THREADS % CHUNKS == 0 && TOTAL % THREADS == 0 && TOTAL / THREADS <= MAX_COPIES) {
    constexpr int STEP = THREADS / CHUNKS;
    int row = thread / CHUNKS, chunk = thread % CHUNKS * 16, column = thread % CHUNKS * Shape::PER_CHUNK;
    bool inside = column < width;
    const typename T::Storage* source = from + (long long)(row0 + row) * pitch + column;
    smem_t to = tile + smem_t(Shape::offset(row, chunk));
#pragma unroll
    for (int i = 0; i < TOTAL / THREADS; ++i) {
      int further = i * STEP;
      bool valid = inside && u32(row0 + row + further) < u32(rows);
      smem_t at = STEP % 8 ? tile + smem_t(Shape::offset(row + further, chunk)) : to + smem_t(further * Shape::PITCH);
      copy_chunk<T>(at, valid ? source + (long long)(further) * pitch : from, valid);
    }
  } else {
    for (int i = thread; i < TOTAL; i += THREADS) {
      int row = i / CHUNKS, chunk = i % CHUNKS, column = chunk * Shape::PER_CHUNK;
      bool valid = column < width && u32(row0 + row) < u32(rows);
      copy_chunk<T>(tile + smem_t(Shape::offset(row, chunk * 16)),
                   valid ? from + (long long)(row0 + row) * pitch + column : from, valid);
    }
  }
}
