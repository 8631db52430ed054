import { sameShape, shapeToString } from "@tritonjs/protocol";
import type { PayloadStream, PayloadTensor, TensorDataSet, TensorPayload } from "./data-set.js";
import { invalidOption } from "./invalid-option.js";
import type { Step, Steps } from "./steps.js";
import type { TestedModel } from "./tested-model.js";

/**
 * Joins rows to requests: request `n` takes `batchSize` rows from row `n * batchSize` on, and begins again after the
 * last row.
 *
 * @throws TritonError INVALID_ARG for a batch that the model cannot take, or rows that do not fit together.
 */
export function payloadsOf(
  model: TestedModel,
  { streams, areGiven }: Steps,
  batchSize: number,
): TensorDataSet {
  checkBatchSize(model, batchSize);
  const rows = streams.flat();
  const count = rows.length / greatestDivisor(rows.length, batchSize);
  const payloads = Array.from({ length: count }, (_, request) =>
    payloadOf(
      model,
      Array.from({ length: batchSize }, (_, row) => rows[(request * batchSize + row) % rows.length]!),
    ),
  );
  const ranges: PayloadStream[] = [];
  let first = 0;
  for (const stream of streams) {
    ranges.push({ first, count: stream.length });
    first += stream.length;
  }
  const timestampsMs = rows.every((row) => row.timestampMs !== undefined)
    ? rows.map((row) => row.timestampMs!)
    : undefined;
  return { kind: "tensors", payloads, streams: ranges, hasGivenSteps: areGiven, batchSize, timestampsMs };
}

function checkBatchSize({ name, maxBatchSize, isSequenceModel }: TestedModel, batchSize: number): void {
  if (!Number.isSafeInteger(batchSize) || batchSize < 1)
    throw invalidOption(`batch size: expected a whole number of at least 1, got ${batchSize}`);
  if (batchSize === 1) return;
  if (maxBatchSize === 0)
    throw invalidOption(
      `batch size: model '${name}' does not support batching: expected 1, got ${batchSize}`,
    );
  if (batchSize > maxBatchSize)
    throw invalidOption(
      `batch size: expected at most ${maxBatchSize}, the maximum of model '${name}', got ${batchSize}`,
    );
  if (isSequenceModel)
    throw invalidOption(`batch size: expected 1 for the sequence model '${name}', got ${batchSize}`);
}

function payloadOf(model: TestedModel, rows: readonly Step[]): TensorPayload {
  const inputs: PayloadTensor[] = [];
  for (const { name, datatype, isShapeTensor } of model.inputs) {
    const [first, ...others] = rows.map((row) => row.inputs.get(name));
    const missing = [first, ...others].indexOf(undefined);
    if (first === undefined && others.every((tensor) => tensor === undefined)) continue;
    if (missing >= 0)
      throw invalidOption(
        `${rows[missing]!.where}: input '${name}': expected data as in the other rows of its batch`,
      );
    const { shape, bytes, fresh } = first!;
    others.forEach((tensor, i) => {
      if (!sameShape(tensor!.shape, shape))
        throw invalidOption(
          `${rows[i + 1]!.where}: input '${name}': expected shape ${shapeToString(shape)} as in the other rows of its ` +
            `batch, got ${shapeToString(tensor!.shape)}`,
        );
      if (isShapeTensor && Buffer.compare(tensor!.bytes, bytes) !== 0)
        throw invalidOption(
          `${rows[i + 1]!.where}: input '${name}' is a shape tensor: expected equal values in all rows of a batch`,
        );
    });
    const hasBatchAxis = model.maxBatchSize > 0 && !isShapeTensor;
    inputs.push({
      name,
      datatype,
      shape: hasBatchAxis ? [rows.length, ...shape] : shape,
      bytes: hasBatchAxis && others.length > 0 ? joined([first!, ...others.map((one) => one!)]) : bytes,
      fresh,
    });
  }
  const expected = rows[0]!.expected?.map((output) => ({
    ...output,
    bytes:
      rows.length === 1
        ? output.bytes
        : joined(rows.map((row) => row.expected!.find((other) => other.name === output.name)!)),
  }));
  return { inputs, expected };
}

const joined = (parts: readonly { readonly bytes: Uint8Array }[]): Uint8Array =>
  Buffer.concat(parts.map((part) => part.bytes));

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}
