import { TritonError } from "./triton-error.js";

/** Dimensions of a tensor, outermost first. In a specification -1 means any size. */
export type Shape = readonly number[];

/** Formats a shape as `[-1,16]`, the form of Triton's error texts. */
export function shapeToString(shape: Shape): string {
  return `[${shape.join(",")}]`;
}

/**
 * Converts dimensions from the wire to a shape. A dimension beyond 2^53 stays a bigint, so that error texts show all of
 * its digits. No tensor can have such a dimension: {@link elementCount} refuses it.
 */
export function wireShape(dims: readonly (number | bigint)[]): Shape {
  return (dims.some((dim) => typeof dim === "bigint") ? dims.map(narrow) : dims) as Shape;
}

function narrow(dim: number | bigint): number | bigint {
  const number = Number(dim);
  return Number.isSafeInteger(number) ? number : dim;
}

/** Number of elements as Triton counts them, in 64 bits that may overflow. */
export function wrappedElementCount(shape: Shape): bigint {
  return BigInt.asIntN(
    64,
    shape.reduce((product, dim) => product * BigInt(dim), 1n),
  );
}

/**
 * Number of elements of a tensor of this shape; 1 for a scalar `[]`.
 *
 * @throws TritonError INVALID_ARG if a dimension is not a non-negative integer, or the product is too large for an
 * exact number.
 */
export function elementCount(shape: Shape): number {
  let count = 1;
  for (const dim of shape) {
    if (!Number.isSafeInteger(dim) || dim < 0) {
      throw new TritonError("INVALID_ARG", `invalid dimension ${dim} in shape ${shapeToString(shape)}`, {
        reason: "INVALID_INPUT",
      });
    }
    count *= dim;
  }
  if (!Number.isSafeInteger(count)) {
    throw new TritonError(
      "INVALID_ARG",
      `the number of elements of shape ${shapeToString(shape)} is too large`,
      { reason: "INVALID_INPUT" },
    );
  }
  return count;
}

/** True if both shapes have the same dimensions, starting at axis `from`. */
export function sameShape(a: Shape, b: Shape, from = 0): boolean {
  if (a.length !== b.length) return false;
  for (let i = from; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/**
 * True if `shape` matches `spec`, in which -1 means any size.
 *
 * @param from axis of `shape` to which the first axis of `spec` corresponds
 */
export function matchesShape(spec: Shape, shape: Shape, from = 0): boolean {
  if (spec.length + from !== shape.length) return false;
  for (let i = 0; i < spec.length; i++) if (spec[i] !== -1 && spec[i] !== shape[i + from]) return false;
  return true;
}
