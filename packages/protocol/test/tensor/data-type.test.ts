import { describe, expect, it } from "vitest";
import {
  DATA_TYPES,
  elementByteSize,
  fromConfigDataType,
  isDataType,
  toConfigDataType,
  typedArrayFor,
} from "../../src/data-types.js";

describe("data types", () => {
  it("are the fourteen types of the protocol", () => {
    expect([...DATA_TYPES].sort()).toEqual(
      "BF16 BOOL BYTES FP16 FP32 FP64 INT16 INT32 INT64 INT8 UINT16 UINT32 UINT64 UINT8".split(" "),
    );
    expect(DATA_TYPES.every(isDataType)).toBe(true);
  });

  it("are distinguished from other words, including names of Object's prototype", () => {
    for (const word of ["fp32", "STRING", "constructor", "toString", "", undefined, 3]) {
      expect(isDataType(word)).toBe(false);
    }
  });

  it("have the element sizes of the wire format", () => {
    const sizes = Object.fromEntries(DATA_TYPES.map((datatype) => [datatype, elementByteSize(datatype)]));
    expect(sizes).toEqual({
      BOOL: 1,
      UINT8: 1,
      UINT16: 2,
      UINT32: 4,
      UINT64: 8,
      INT8: 1,
      INT16: 2,
      INT32: 4,
      INT64: 8,
      FP16: 2,
      BF16: 2,
      FP32: 4,
      FP64: 8,
      BYTES: 0,
    });
  });

  it("map to typed arrays of their kind; half floats are held as bits", () => {
    expect(typedArrayFor("INT64")).toBe(BigInt64Array);
    expect(typedArrayFor("BOOL")).toBe(Uint8Array);
    expect(typedArrayFor("FP16")).toBe(Uint16Array);
    expect(typedArrayFor("BF16")).toBe(Uint16Array);
  });

  it("have a name in configurations; that of BYTES is TYPE_STRING", () => {
    expect(toConfigDataType("BYTES")).toBe("TYPE_STRING");
    expect(toConfigDataType("FP32")).toBe("TYPE_FP32");
    for (const datatype of DATA_TYPES) expect(fromConfigDataType(toConfigDataType(datatype))).toBe(datatype);
  });

  it("are undefined for unknown configuration names", () => {
    for (const name of ["TYPE_BYTES", "TYPE_INVALID", "TYPE_", "", "TYPE_constructor"]) {
      expect(fromConfigDataType(name)).toBeUndefined();
    }
  });
});
