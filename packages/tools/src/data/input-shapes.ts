import { elementCount, shapeToString } from "@tritonjs/protocol";
import { invalidOption } from "./invalid-option.js";
import type { TestedInput, TestedModel } from "./tested-model.js";

/** Shapes by input, as `--shape` gives them. */
export type GivenShapes = Readonly<Record<string, readonly number[]>>;

/**
 * Checks given shapes against the model.
 *
 * @throws TritonError INVALID_ARG for an unknown input, or a shape that does not match the input.
 */
export function checkShapes({ name: model, inputs }: TestedModel, shapes: GivenShapes): void {
  for (const [name, shape] of Object.entries(shapes)) {
    const input = inputs.find((one) => one.name === name);
    if (input === undefined) {
      const known = inputs.map((one) => `'${one.name}'`).join(", ");
      throw invalidOption(`--shape: expected an input of model '${model}' (${known}), got '${name}'`);
    }
    checkShape(input, shape, "--shape");
  }
}

/** @throws TritonError INVALID_ARG for a shape that the input cannot have. */
export function checkShape({ name, dims }: TestedInput, shape: readonly number[], where: string): void {
  const fits =
    shape.length === dims.length &&
    shape.every((dim, i) => Number.isSafeInteger(dim) && (dims[i] === -1 ? dim >= 0 : dim === dims[i])) &&
    Number.isSafeInteger(elementCount(shape));
  if (!fits)
    throw invalidOption(
      `${where}: input '${name}': expected a shape that matches ${shapeToString(dims)}, got ${shapeToString(shape)}`,
    );
}

/** The shape of an input, from the options or the model; undefined when a dimension is open. */
export function knownShape(input: TestedInput, shapes: GivenShapes): readonly number[] | undefined {
  const given = Object.hasOwn(shapes, input.name) ? shapes[input.name] : undefined;
  if (given !== undefined) return given;
  return input.dims.includes(-1) ? undefined : input.dims;
}
