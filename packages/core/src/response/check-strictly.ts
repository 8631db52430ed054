import {
  DATA_TYPES,
  type DataType,
  isNdArray,
  type Shape,
  TritonError,
  typedArrayFor,
} from "@tritonjs/protocol";

import type { DeclaredOutput } from "./declared-output.js";

/**
 * PyTriton's strict validation of a callback's result. It accepts only ndarrays of the declared names, data types and
 * shapes, without any conversion.
 *
 * @throws TritonError INTERNAL with PyTriton's text for the first fault found.
 */
export function checkStrictly(
  model: string,
  declared: ReadonlyMap<string, DeclaredOutput>,
  outputs: object,
): void {
  const fault = (text: string) => new TritonError("INTERNAL", text, { reason: "INVALID_OUTPUT" });
  for (const [name, value] of Object.entries(outputs)) {
    if (!isNdArray(value)) throw fault(`Not all values returned by \`${model}\` model callable are ndarrays`);
    const output = declared.get(name);
    if (output === undefined) {
      throw fault(`Returned output \`${name}\` is not defined in model config for model \`${model}\`.`);
    }
    const of = `Returned output \`${name}\` for model \`${model}\``;
    const types = dataTypesOf(value.data);
    if (!types.includes(output.datatype)) {
      throw fault(
        `${of} has invalid type. Returned: ${types[0] ?? "an array"}. Expected: ${output.datatype}.`,
      );
    }
    if (output.datatype === "BYTES") checkElements(model, name, value.data as readonly unknown[]);
    const got = output.hasRows ? value.shape.slice(1) : value.shape;
    const expected = output.hasRows ? output.shape.slice(1) : output.shape;
    const shapes = `Returned: ${tuple(got)}. Expected: ${tuple(expected)}.`;
    if (got.length !== expected.length) throw fault(`${of} has invalid shapes. ${shapes}`);
    if (got.some((dim, axis) => expected[axis] !== -1 && expected[axis] !== dim)) {
      throw fault(`${of} has invalid shapes at one or more positions. ${shapes}`);
    }
  }
}

function checkElements(model: string, name: string, elements: readonly unknown[]): void {
  const other = elements.find((element) => !(element instanceof Uint8Array));
  if (other === undefined) return;
  throw new TritonError(
    "INTERNAL",
    typeof other === "string"
      ? `Use string/byte-string instead of object for passing string in ndarray from model \`${model}\`.`
      : "Only bytes as objects dtype are supported by PyTriton. " +
          `Returned \`${name}\` from \`${model}\` has \`${typeof other}\` type.`,
    { reason: "INVALID_OUTPUT" },
  );
}

function dataTypesOf(data: unknown): readonly DataType[] {
  if (Array.isArray(data)) return ["BYTES"];
  return DATA_TYPES.filter(
    (type) => type !== "BYTES" && data instanceof (typedArrayFor(type) as typeof Uint8Array),
  );
}

function tuple(shape: Shape): string {
  return `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;
}
