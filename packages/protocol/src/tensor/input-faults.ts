import { closestName } from "../errors/closest-name.js";
import { matchesShape, type Shape, shapeToString } from "./shape.js";

/** An input of a model, by which names are checked. */
export interface NamedInput {
  readonly name: string;
  readonly optional: boolean;
}

/** Describes the first input that the model lacks, or else the required inputs that are missing. */
export function inputNamesFault(
  modelName: string,
  inputs: readonly NamedInput[],
  given: readonly string[],
): string | undefined {
  const names = inputs.map(({ name }) => name);
  for (const name of given) {
    if (names.includes(name)) continue;
    const meant = closestName(name, names);
    const advice = meant === undefined ? `expected ${quoted(names)}` : `did you mean '${meant}'?`;
    return `model '${modelName}' has no input '${name}': ${advice}`;
  }
  const missing = inputs.filter(({ name, optional }) => !optional && !given.includes(name));
  return missing.length === 0
    ? undefined
    : `model '${modelName}': missing input ${quoted(missing.map(({ name }) => name))}`;
}

/** What the batch axis is to the shapes of a call: given by the caller, added to one sample, or not there at all. */
export type ShapeAxis = "given" | "added" | "none";

/**
 * Describes an input whose shape does not fit, in the shapes that the caller knows: with the batch axis where the caller
 * gives it. Names the other method where that is what the caller means. Undefined for a shape that fits.
 *
 * @param what the input in the text: `input 'x' of model 'm'`
 * @param dims dimensions of the input without the batch axis; -1 for any size
 * @param shape shape that the caller gave
 */
export function inputShapeFault(
  what: string,
  dims: Shape,
  shape: Shape,
  axis: ShapeAxis,
): string | undefined {
  const expected = axis === "given" ? [-1, ...dims] : dims;
  if (matchesShape(expected, shape)) return undefined;
  const meaning = { given: " with the batch axis", added: " of one sample", none: "" }[axis];
  const text = `${what}: expected shape ${shapeToString(expected)}${meaning}, got ${shapeToString(shape)}`;
  if (axis === "given") {
    return matchesShape(dims, shape) ? `${text}: use inferSample() for one sample, or add the axis` : text;
  }
  if (!matchesShape([-1, ...dims], shape)) return text;
  return `${text}: ${axis === "added" ? "use inferBatch() for a batch" : "the model has no batch axis"}`;
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(", ");
}
