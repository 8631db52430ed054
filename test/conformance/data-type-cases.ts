import type { DataType } from "@tritonjs/core";
import { DATA_TYPES } from "@tritonjs/protocol";
import type { Element, InferCall, Way } from "./clients/client.js";

/** A request that an identity model answers with its own input. */
export interface IdentityCase {
  readonly title: string;
  readonly datatype: DataType;
  readonly call: InferCall;
  /** Clients that have no form for such a tensor. */
  readonly unlike?: readonly Way[];
}

const text = (value: string): Uint8Array => Uint8Array.from(Buffer.from(value));

/** Test values of each data type: its extremes, and values that are easily lost. */
const elements: Record<DataType, readonly Element[]> = {
  BOOL: [1, 0, 0, 1, 1, 0],
  UINT8: [0, 255, 1, 127, 128, 254],
  UINT16: [0, 65_535, 1, 32_767, 32_768, 256],
  UINT32: [0, 4_294_967_295, 1, 2_147_483_647, 2_147_483_648, 65_536],
  UINT64: [
    0n,
    18_446_744_073_709_551_615n,
    9_007_199_254_740_993n,
    9_223_372_036_854_775_808n,
    1n,
    4_294_967_296n,
  ],
  INT8: [0, 127, -128, -1, 1, 64],
  INT16: [0, 32_767, -32_768, -1, 1, 256],
  INT32: [0, 2_147_483_647, -2_147_483_648, -1, 1, 65_536],
  INT64: [
    9_223_372_036_854_775_807n,
    -9_223_372_036_854_775_808n,
    9_007_199_254_740_993n,
    -9_007_199_254_740_993n,
    -1n,
    0n,
  ],
  // 1, -2, the largest, the smallest above zero, infinity, -0.
  FP16: [0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00, 0x8000],
  // 1, -2, NaN, the smallest above zero, infinity, -0.
  BF16: [0x3f80, 0xc000, 0x7fc0, 0x0001, 0x7f80, 0x8000],
  FP32: [NaN, Infinity, -Infinity, -0, Math.fround(0.1), 3.4028234663852886e38],
  FP64: [-0, NaN, -Infinity, Infinity, Number.MAX_VALUE, Number.MIN_VALUE],
  BYTES: [text("iris"), text(""), text("a\0b\0"), text('"é\\\n\u2028'), text("花 😀"), text("end")],
};

const shapes: readonly {
  readonly title: string;
  readonly model: string;
  readonly shape: readonly number[];
}[] = [
  { title: "one element", model: "scalar", shape: [1] },
  { title: "a matrix", model: "matrix", shape: [2, 3] },
  { title: "a column", model: "matrix", shape: [6, 1] },
  { title: "no element", model: "matrix", shape: [0, 3] },
  { title: "a batch of one row", model: "rows", shape: [1, 2] },
  { title: "a batch of three rows", model: "rows", shape: [3, 2] },
];

/** Clients without 16-bit floats: JSON has no number for them, and protobuf no field. */
const WITHOUT_HALVES: readonly Way[] = ["HTTP JSON", "gRPC typed"];

/** Every data type in every shape. */
export const identityCases: readonly IdentityCase[] = DATA_TYPES.flatMap((datatype) =>
  shapes.map(({ title, model, shape }) => {
    const count = shape.reduce((product, dim) => product * dim, 1);
    const input = { name: "x", datatype, shape, elements: elements[datatype].slice(0, count) };
    return {
      title: `${title} of ${datatype}`,
      datatype,
      call: { model: `${model}_${datatype}`, inputs: [input] },
      unlike: datatype === "FP16" || datatype === "BF16" ? WITHOUT_HALVES : [],
    };
  }),
);

/** Bytes that are not text: JSON strings of an ordinary client cannot carry them. */
export const noTextCase: IdentityCase = {
  title: "bytes that are not UTF-8",
  datatype: "BYTES",
  call: {
    model: "matrix_BYTES",
    inputs: [
      {
        name: "x",
        datatype: "BYTES",
        shape: [1, 3],
        elements: [Uint8Array.of(0xff, 0xfe, 0x80), Uint8Array.of(0xc3), Uint8Array.of(0, 0xed, 0xa0, 0x80)],
      },
    ],
  },
  unlike: ["HTTP JSON"],
};
