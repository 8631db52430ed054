/** Rows of equal length. */
export type Matrix = readonly (readonly number[])[];

/** Rows become columns. */
export function transpose(matrix: Matrix): Matrix {
  const width = matrix[0]?.length ?? 0;
  return Array.from({ length: width }, (_, column) => matrix.map((row) => row[column]!));
}

/** Matrix product: `[n, k]` times `[k, m]` is `[n, m]`. */
export function multiply(left: Matrix, right: Matrix): Matrix {
  const columns = transpose(right);
  return left.map((row) => columns.map((column) => dot(row, column)));
}

/** Sum of the products of elements in equal places. */
export function dot(left: readonly number[], right: readonly number[]): number {
  let sum = 0;
  for (let i = 0; i < left.length; i++) sum += left[i]! * right[i]!;
  return sum;
}

/** Applies a function to the elements in equal places of two matrices of equal shape. */
export function combine(left: Matrix, right: Matrix, apply: (a: number, b: number) => number): Matrix {
  return left.map((row, i) => row.map((value, j) => apply(value, right[i]![j]!)));
}
