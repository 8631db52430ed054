import type { Element, NamedTensor } from "../clients/client.js";
import { float16ToNumber } from "./half.js";

/** Tolerances of ONNX's own test runner. */
const RELATIVE = 1e-3;
const ABSOLUTE = 1e-7;

/** The first difference between two tensors, in words; undefined if they are equal within ONNX's tolerances. */
export function differenceOf(expected: NamedTensor, got: NamedTensor | undefined): string | undefined {
  if (got === undefined) return `no output '${expected.name}'`;
  // The protocol has no scalars.
  const shape = expected.shape.length === 0 ? [1] : expected.shape;
  if (got.datatype !== expected.datatype) return `expected ${expected.datatype}, got ${got.datatype}`;
  if (String(got.shape) !== String(shape)) return `expected shape [${shape}], got [${got.shape}]`;
  const at = expected.elements.findIndex((one, i) => !isEqual(expected.datatype, one, got.elements[i]!));
  if (at < 0) return undefined;
  return `'${expected.name}' differs at ${at}: expected ${expected.elements[at]}, got ${got.elements[at]}`;
}

function isEqual(datatype: string, expected: Element, got: Element): boolean {
  if (expected instanceof Uint8Array) return Buffer.compare(expected, got as Uint8Array) === 0;
  if (!datatype.startsWith("FP")) return BigInt(expected) === BigInt(got as number | bigint);
  const isHalf = datatype === "FP16";
  const one = isHalf ? float16ToNumber(expected as number) : Number(expected);
  const other = isHalf ? float16ToNumber(got as number) : Number(got);
  if (Number.isNaN(one) || !Number.isFinite(one)) return Object.is(one, other);
  return Math.abs(one - other) <= ABSOLUTE + RELATIVE * Math.abs(one);
}
