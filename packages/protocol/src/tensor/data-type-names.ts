import { closestName } from "../errors/closest-name.js";
import { DATA_TYPES, type DataType } from "./data-type.js";

/** Names of data types in JavaScript, NumPy, TensorFlow, ONNX and C, besides those of one letter and a number of bits. */
const FOREIGN_NAMES: Readonly<Record<string, DataType>> = {
  float: "FP32",
  single: "FP32",
  number: "FP32",
  double: "FP64",
  half: "FP16",
  bfloat16: "BF16",
  bool: "BOOL",
  boolean: "BOOL",
  byte: "UINT8",
  uint8clampedarray: "UINT8",
  short: "INT16",
  int: "INT32",
  integer: "INT32",
  long: "INT64",
  bigint: "INT64",
  bigint64array: "INT64",
  biguint64array: "UINT64",
  string: "BYTES",
  str: "BYTES",
  text: "BYTES",
  object: "BYTES",
  buffer: "BYTES",
};

const LETTERS: Readonly<Record<string, string>> = { float: "FP", f: "FP", fp: "FP", i: "INT", u: "UINT" };

/**
 * Describes a data type that the protocol does not have: it proposes the one that is likely meant, and lists all.
 *
 * @example `unknownDataTypeText("float32") // "unknown data type 'float32': did you mean 'FP32'? The data types are BOOL, ..."`
 */
export function unknownDataTypeText(name: unknown): string {
  const meant = typeof name === "string" ? meantDataType(name) : undefined;
  const question = meant === undefined ? "" : `did you mean '${meant}'? `;
  return `unknown data type '${String(name)}': ${question}The data types are ${DATA_TYPES.join(", ")}`;
}

function meantDataType(name: string): string | undefined {
  // `np.float32`, `torch.float32`, `tensor(float)` and `TYPE_FP32` name the type at the end.
  const bare = name.toLowerCase().replace(/^(?:[a-z]+\.|tensor\(|type_)|\)$/g, "");
  const [, letters, bits] = /^([a-z]+)(8|16|32|64)(?:_t|array)?$/.exec(bare) ?? [];
  const known = Object.hasOwn(FOREIGN_NAMES, bare) ? FOREIGN_NAMES[bare] : undefined;
  if (known !== undefined) return known;
  if (letters !== undefined) {
    const type = `${LETTERS[letters] ?? letters.toUpperCase()}${bits}`;
    if ((DATA_TYPES as readonly string[]).includes(type)) return type;
  }
  return closestName(bare, DATA_TYPES);
}
