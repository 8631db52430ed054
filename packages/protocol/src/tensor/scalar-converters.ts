import type { DataType } from "./data-type.js";
import { toBfloat16, toFloat16 } from "./half-float.js";

type Converter = (scalar: unknown) => number | bigint | undefined;

const integer =
  (min: number, max: number): Converter =>
  (scalar) =>
    typeof scalar === "number" && Number.isInteger(scalar) && scalar >= min && scalar <= max
      ? scalar
      : undefined;

const bigInteger =
  (min: bigint, max: bigint): Converter =>
  (scalar) => {
    if (typeof scalar === "bigint") return scalar >= min && scalar <= max ? scalar : undefined;
    return Number.isSafeInteger(scalar) && BigInt(scalar as number) >= min
      ? BigInt(scalar as number)
      : undefined;
  };

const float: Converter = (scalar) => (typeof scalar === "number" ? scalar : undefined);

/** Conversions of a scalar to an element of a data type; undefined for a scalar that does not fit. */
export const SCALAR_CONVERTERS: Record<Exclude<DataType, "BYTES">, Converter> = {
  BOOL: (scalar) =>
    typeof scalar === "boolean" ? Number(scalar) : scalar === 0 || scalar === 1 ? scalar : undefined,
  UINT8: integer(0, 0xff),
  UINT16: integer(0, 0xffff),
  UINT32: integer(0, 0xffff_ffff),
  UINT64: bigInteger(0n, 0xffff_ffff_ffff_ffffn),
  INT8: integer(-0x80, 0x7f),
  INT16: integer(-0x8000, 0x7fff),
  INT32: integer(-0x8000_0000, 0x7fff_ffff),
  INT64: bigInteger(-0x8000_0000_0000_0000n, 0x7fff_ffff_ffff_ffffn),
  FP16: (scalar) => (typeof scalar === "number" ? toFloat16(scalar) : undefined),
  BF16: (scalar) => (typeof scalar === "number" ? toBfloat16(scalar) : undefined),
  FP32: float,
  FP64: float,
};

/** Scalars that fit, for errors. */
export const SCALAR_EXPECTATIONS: Record<Exclude<DataType, "BYTES">, string> = {
  BOOL: "a boolean, 0 or 1",
  UINT8: "an integer in [0, 255]",
  UINT16: "an integer in [0, 65535]",
  UINT32: "an integer in [0, 2^32)",
  UINT64: "a bigint or safe integer in [0, 2^64)",
  INT8: "an integer in [-128, 127]",
  INT16: "an integer in [-32768, 32767]",
  INT32: "an integer in [-2^31, 2^31)",
  INT64: "a bigint or safe integer in [-2^63, 2^63)",
  FP16: "a number",
  BF16: "a number",
  FP32: "a number",
  FP64: "a number",
};
