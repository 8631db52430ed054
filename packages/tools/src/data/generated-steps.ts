import { elementByteSize, elementCount, encodeBytes, shapeToString } from "@tritonjs/protocol";
import { DATA_DEFAULTS, type DataOptions } from "./data-options.js";
import { type GivenShapes, knownShape } from "./input-shapes.js";
import { invalidOption } from "./invalid-option.js";
import { Random } from "./random.js";
import { randomElements, unitByteSize } from "./random-elements.js";
import type { Step, Steps, StepTensor } from "./steps.js";
import type { TestedInput, TestedModel } from "./tested-model.js";

/**
 * Memory for random rows, and most of them. Requests beyond them repeat rows with fresh values. Without fresh values all
 * requests carry the same rows.
 */
const ROWS_BYTES = 64 * 1024 * 1024;
const MOST_ROWS = 256;

/** Bytes that each request replaces: enough that data hardly ever repeats, at the cost of a short copy. */
const FRESH_BYTES = 64;

/** Bytes of the length in front of a string. */
const LENGTH_BYTES = 4;

/**
 * Rows of random values or zeros for all required inputs.
 *
 * @throws TritonError INVALID_ARG for an input with an open dimension, or one whose values are shapes.
 */
export function generatedSteps(model: TestedModel, options: DataOptions, kind: "random" | "zero"): Steps {
  const inputs = model.inputs.filter((input) => !input.optional);
  const shapes = inputs.map((input) => generatedShape(model, input, options.shapes ?? {}));
  const { stringLength = DATA_DEFAULTS.stringLength, stringData, seed = DATA_DEFAULTS.seed } = options;
  const random = new Random(seed);
  const elementBytes = ({ datatype }: TestedInput) =>
    datatype === "BYTES" ? stringLength + LENGTH_BYTES : elementByteSize(datatype);
  const rowBytes = inputs.reduce((sum, input, i) => sum + elementCount(shapes[i]!) * elementBytes(input), 1);
  const { batchSize = DATA_DEFAULTS.batchSize, freshData = DATA_DEFAULTS.freshData } = options;
  const mostRows = freshData ? Math.min(MOST_ROWS, Math.floor(ROWS_BYTES / rowBytes)) : batchSize;
  const rows = kind === "zero" ? 1 : Math.max(batchSize, mostRows);
  const tensor = (input: TestedInput, shape: readonly number[]): StepTensor => {
    const count = elementCount(shape);
    if (input.datatype === "BYTES") {
      const text = stringData === undefined ? undefined : new TextEncoder().encode(stringData);
      const strings = Array.from(
        { length: count },
        () => text ?? (kind === "zero" ? new Uint8Array() : randomElements("BYTES", stringLength, random)),
      );
      const isFresh = kind === "random" && text === undefined && count > 0;
      return withFresh({ shape, bytes: encodeBytes(strings) }, isFresh ? stringLength : 0, LENGTH_BYTES, 1);
    }
    if (kind === "zero") return { shape, bytes: new Uint8Array(count * elementByteSize(input.datatype)) };
    const bytes = randomElements(input.datatype, count, random);
    return withFresh({ shape, bytes }, bytes.length, 0, unitByteSize(input.datatype));
  };
  const step = (row: number): Step => ({
    inputs: new Map(inputs.map((input, i) => [input.name, tensor(input, shapes[i]!)])),
    where: `generated row ${row}`,
  });
  return { streams: [Array.from({ length: rows }, (_, row) => step(row))], areGiven: false };
}

function withFresh(tensor: StepTensor, available: number, offset: number, unit: number): StepTensor {
  const byteSize = Math.min(available, FRESH_BYTES);
  return byteSize < unit ? tensor : { ...tensor, fresh: { offset, byteSize: byteSize - (byteSize % unit) } };
}

function generatedShape(model: TestedModel, input: TestedInput, shapes: GivenShapes): readonly number[] {
  if (input.isShapeTensor)
    throw invalidOption(
      `input '${input.name}' of model '${model.name}' is a shape tensor: expected its values in --input-data, ` +
        "got generated data",
    );
  const shape = knownShape(input, shapes);
  if (shape === undefined)
    throw invalidOption(
      `input '${input.name}' of model '${model.name}' has the variable shape ${shapeToString(input.dims)}: expected ` +
        `its shape, as in --shape ${input.name}:${input.dims.map((dim) => (dim === -1 ? 1 : dim)).join(",")}`,
    );
  return shape;
}
