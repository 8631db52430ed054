import type { DataType } from "@tritonjs/core";
import { asBoolean, asDouble, asInteger, asUnsigned } from "../json/access.js";
import type { JsonValue } from "../json/json-value.js";

/** Data types whose elements can be written in JSON as something else than a string. */
export type NumericDataType = Exclude<DataType, "BYTES" | "FP16" | "BF16">;

/** What one data type asks of a JSON element. */
export interface ElementReader {
  /** Whether packed numbers can be taken without looking at each. BOOL takes none. */
  readonly packed: "any" | "integers" | "unsigned" | "none";
  read(value: JsonValue): number | bigint;
}

const signed: ElementReader = { packed: "integers", read: (value) => asInteger(value) };
const unsigned: ElementReader = { packed: "unsigned", read: (value) => asUnsigned(value) };
const floating: ElementReader = { packed: "any", read: (value) => asDouble(value) };

/** By data type: integers outside the type wrap around, as they do in Triton. */
export const elementReaders: Readonly<Record<NumericDataType, ElementReader>> = {
  BOOL: { packed: "none", read: (value) => (asBoolean(value) ? 1 : 0) },
  UINT8: unsigned,
  UINT16: unsigned,
  UINT32: unsigned,
  UINT64: unsigned,
  INT8: signed,
  INT16: signed,
  INT32: signed,
  INT64: signed,
  FP32: floating,
  FP64: floating,
};
