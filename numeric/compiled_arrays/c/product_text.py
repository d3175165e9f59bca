"""The C text of a ufunc's inner loop that multiplies matrices by BLAS functions."""

PRODUCT = r"""#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { ROWS = 101, PLAIN = 111, TURNED = 112, UPPER = 121 };

typedef int64_t Size;
typedef void (*Gemm)(int, int, int, Size, Size, Size, $real, const $real *, Size, const $real *, Size, $real,
                     $real *, Size);
typedef void (*Gemv)(int, int, Size, Size, $real, const $real *, Size, const $real *, Size, $real, $real *,
                     Size);
typedef void (*Syrk)(int, int, int, Size, Size, $real, const $real *, Size, $real, $real *, Size);

/* Matrices are described in elements: the address, the lengths and the steps of both axes. */
typedef struct { $real *at; ptrdiff_t rows, columns, row_step, column_step; } Matrix;

static Matrix turned(Matrix a) {
  const Matrix t = {a.at, a.columns, a.rows, a.column_step, a.row_step};
  return t;
}

/* How BLAS reads a matrix: PLAIN if elements of a row lie together, TURNED if those of a column do. */
static int order(Matrix a, Size *lead) {
  if ((a.column_step == 1 || a.columns == 1) && (a.row_step >= a.columns || a.rows == 1)) {
    *lead = a.rows == 1 ? a.columns : a.row_step;
    return PLAIN;
  }
  if ((a.row_step == 1 || a.rows == 1) && (a.column_step >= a.rows || a.columns == 1)) {
    *lead = a.columns == 1 ? a.rows : a.column_step;
    return TURNED;
  }
  return 0;
}

/* The matrix with its rows one after the other, in new memory where it is read in no order of BLAS's. */
static int in_order(Matrix *a, $real **made) {
  Size lead;
  *made = NULL;
  if (order(*a, &lead)) return 1;
  $real *copy = *made = malloc(sizeof($real) * a->rows * a->columns);
  if (!copy) return 0;
  for (ptrdiff_t i = 0; i < a->rows; i++)
    for (ptrdiff_t j = 0; j < a->columns; j++)
      copy[i * a->columns + j] = a->at[i * a->row_step + j * a->column_step];
  const Matrix whole = {copy, a->rows, a->columns, a->columns, 1};
  *a = whole;
  return 1;
}

/* Sums in turn: for results that BLAS cannot write, and where there is no memory for copies. */
static void by_elements(Matrix a, Matrix b, Matrix c) {
  for (ptrdiff_t i = 0; i < c.rows; i++)
    for (ptrdiff_t j = 0; j < c.columns; j++) {
      $real sum = 0;
      for (ptrdiff_t k = 0; k < a.columns; k++)
        sum += a.at[i * a.row_step + k * a.column_step] * b.at[k * b.row_step + j * b.column_step];
      c.at[i * c.row_step + j * c.column_step] = sum;
    }
}

/* A x, for a column x */
static int by_vector(Gemv gemv, Matrix a, Matrix x, Matrix y) {
  Size lead;
  const int how = order(a, &lead);
  const ptrdiff_t in = x.rows == 1 ? 1 : x.row_step, out = y.rows == 1 ? 1 : y.row_step;
  if (!how || in <= 0 || out <= 0) return 0;
  const Size rows = how == PLAIN ? a.rows : a.columns, columns = how == PLAIN ? a.columns : a.rows;
  gemv(ROWS, how, rows, columns, 1, a.at, lead, x.at, in, 0, y.at, out);
  return 1;
}

static void by_matrix(Gemm gemm, Syrk syrk, Matrix a, Matrix b, Matrix c) {
  Size a_lead, b_lead, c_lead;
  const int how = order(c, &c_lead), a_how = order(a, &a_lead), b_how = order(b, &b_lead);
  if (how == TURNED) {
    by_matrix(gemm, syrk, turned(b), turned(a), turned(c));
  } else if (a.at == b.at && a.rows == b.columns && a.row_step == b.column_step
             && a.column_step == b.row_step) {  /* A Aᵀ: one triangle, and its image */
    syrk(ROWS, UPPER, a_how, a.rows, a.columns, 1, a.at, a_lead, 0, c.at, c_lead);
    for (ptrdiff_t i = 1; i < c.rows; i++)
      for (ptrdiff_t j = 0; j < i; j++) c.at[i * c_lead + j] = c.at[j * c_lead + i];
  } else {
    gemm(ROWS, a_how, b_how, a.rows, b.columns, a.columns, 1, a.at, a_lead, b.at, b_lead, 0, c.at, c_lead);
  }
}

static void one_product(void **blas, Matrix a, Matrix b, Matrix c) {
  Size lead;
  if (c.rows == 0 || c.columns == 0) return;
  if (a.columns == 0) { by_elements(a, b, c); return; }
  if (c.columns == 1 && by_vector((Gemv)blas[1], a, b, c)) return;
  if (c.rows == 1 && by_vector((Gemv)blas[1], turned(b), turned(a), turned(c))) return;
  $real *first = NULL, *second = NULL;
  if (order(c, &lead) && in_order(&a, &first) && in_order(&b, &second))
    by_matrix((Gemm)blas[0], (Syrk)blas[2], a, b, c);
  else
    by_elements(a, b, c);
  free(first);
  free(second);
}

/* The lowest and the highest address of `count` matrices that stand `step` bytes apart. */
static void extent(Matrix a, ptrdiff_t count, ptrdiff_t step, const char **low, const char **high) {
  const ptrdiff_t lengths[3] = {count, a.rows, a.columns}, size = sizeof($real);
  const ptrdiff_t steps[3] = {step, a.row_step * size, a.column_step * size};
  *low = *high = (const char *)a.at;
  for (int k = 0; k < 3; k++) {
    if (steps[k] < 0) *low += (lengths[k] - 1) * steps[k];
    else *high += (lengths[k] - 1) * steps[k];
  }
  *high += size;
}

static int overlap(Matrix a, ptrdiff_t a_step, Matrix c, ptrdiff_t c_step, ptrdiff_t count) {
  const char *a_low, *a_high, *c_low, *c_high;
  extent(a, count, a_step, &a_low, &a_high);
  extent(c, count, c_step, &c_low, &c_high);
  return a_low < c_high && c_low < a_high;
}

static void undefined(Matrix c) {
  for (ptrdiff_t i = 0; i < c.rows; i++)
    for (ptrdiff_t j = 0; j < c.columns; j++) c.at[i * c.row_step + j * c.column_step] = NAN;
}

void product(char **args, const ptrdiff_t *dimensions, const ptrdiff_t *steps, void *data) {
  const ptrdiff_t count = dimensions[0], m = dimensions[1], k = dimensions[2], n = dimensions[3];
  const ptrdiff_t size = sizeof($real);
  Matrix a = {($real *)args[0], m, k, steps[3] / size, steps[4] / size};
  Matrix b = {($real *)args[1], k, n, steps[5] / size, steps[6] / size};
  Matrix c = {($real *)args[2], m, n, steps[7] / size, steps[8] / size};
  if (count == 0 || m == 0 || n == 0) return;
  /* A result over an operand is made in memory of its own: BLAS may write before it has read. */
  $real *scratch = NULL;
  const int shared = k && (overlap(a, steps[0], c, steps[2], count)
                           || overlap(b, steps[1], c, steps[2], count));
  if (shared) scratch = malloc(sizeof($real) * count * m * n);
  for (ptrdiff_t t = 0; t < count; t++) {
    a.at = ($real *)(args[0] + t * steps[0]);
    b.at = ($real *)(args[1] + t * steps[1]);
    c.at = ($real *)(args[2] + t * steps[2]);
    if (shared && !scratch) { undefined(c); continue; }  /* no memory: NaN, never a wrong number */
    const Matrix own = {scratch + t * m * n, m, n, n, 1};
    one_product(data, a, b, shared ? own : c);
  }
  if (!scratch) return;
  for (ptrdiff_t t = 0; t < count; t++) {
    $real *to = ($real *)(args[2] + t * steps[2]);
    for (ptrdiff_t i = 0; i < m; i++)
      for (ptrdiff_t j = 0; j < n; j++) to[i * c.row_step + j * c.column_step] = scratch[(t * m + i) * n + j];
  }
  free(scratch);
}
"""
