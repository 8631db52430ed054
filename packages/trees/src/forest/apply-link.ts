import type { Link } from "./forest.js";

/** Applies a link function to the sums of rows, in place. */
export function applyLink(
  { name, alpha = 1, ratio = 1 }: Link,
  sums: Float64Array,
  rows: number,
  groups: number,
): void {
  const count = rows * groups;
  switch (name) {
    case "identity":
    case "identity_multiclass":
      return;
    case "softmax":
      for (let row = 0; row < rows; row++) softmax(sums, row * groups, groups);
      return;
    case "sigmoid":
    case "multiclass_ova":
      for (let i = 0; i < count; i++) sums[i] = 1 / (1 + Math.exp(-alpha * sums[i]!));
      return;
    case "exponential":
      for (let i = 0; i < count; i++) sums[i] = Math.exp(sums[i]!);
      return;
    case "hinge":
      for (let i = 0; i < count; i++) sums[i] = sums[i]! > 0 ? 1 : 0;
      return;
    case "signed_square":
      for (let i = 0; i < count; i++) sums[i] = sums[i]! * Math.abs(sums[i]!);
      return;
    case "exponential_standard_ratio":
      for (let i = 0; i < count; i++) sums[i] = 2 ** (-sums[i]! / ratio);
      return;
    case "logarithm_one_plus_exp":
      for (let i = 0; i < count; i++) sums[i] = logOnePlusExp(sums[i]!);
      return;
  }
}

function softmax(sums: Float64Array, start: number, groups: number): void {
  let largest = sums[start]!;
  for (let i = 1; i < groups; i++) largest = Math.max(largest, sums[start + i]!);
  let total = 0;
  for (let i = 0; i < groups; i++) {
    const share = Math.exp(sums[start + i]! - largest);
    sums[start + i] = share;
    total += share;
  }
  for (let i = 0; i < groups; i++) sums[start + i]! /= total;
}

/** ln(1 + e^x), which does not overflow. */
function logOnePlusExp(x: number): number {
  return x > 0 ? x + Math.log1p(Math.exp(-x)) : Math.log1p(Math.exp(x));
}
