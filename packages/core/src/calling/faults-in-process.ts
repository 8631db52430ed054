import {
  inputNamesFault,
  inputShapeFault,
  type ModelConfig,
  type ReasonOf,
  shapeToString,
  type Tensor,
  TritonError,
} from "@tritonjs/protocol";
import type { CallBatchAxis } from "./in-process-tensors.js";

/** Beginning of Triton's texts about a request without an id. */
const NO_ID = "[request id: <id_unknown>] ";

/**
 * The error with which a request of this process is refused. Faults of its inputs are described by the names and shapes
 * that the caller gave. Triton's texts, which clients get, describe the request that the server makes of them.
 */
export function inCallersWords(
  thrown: unknown,
  config: ModelConfig,
  inputs: ReadonlyMap<string, Tensor>,
  axis: CallBatchAxis,
): unknown {
  if (!TritonError.is(thrown) || thrown.code !== "INVALID_ARG") return thrown;
  const { message } = thrown;
  const reason = thrown.reason as ReasonOf<"INVALID_ARG">;
  const text = faultOf(reason, config, inputs, axis) ?? withoutId(message);
  return text === message ? thrown : new TritonError("INVALID_ARG", text, { reason });
}

function faultOf(
  reason: string,
  config: ModelConfig,
  inputs: ReadonlyMap<string, Tensor>,
  axis: CallBatchAxis,
): string | undefined {
  if (reason === "INVALID_INPUT") return inputFault(config, inputs, axis);
  if (reason !== "BATCH_TOO_LARGE") return undefined;
  const { name, input, maxBatchSize } = config;
  const withRows = input.find((one) => !one.isShapeTensor && inputs.has(one.name));
  const rows = withRows && inputs.get(withRows.name)!.shape[0];
  return `batch of model '${name}': expected at most ${maxBatchSize} rows, got ${rows}`;
}

function inputFault(
  { name: modelName, input, maxBatchSize }: ModelConfig,
  inputs: ReadonlyMap<string, Tensor>,
  axis: CallBatchAxis,
): string | undefined {
  const names = inputNamesFault(modelName, input, [...inputs.keys()]);
  if (names !== undefined) return names;
  for (const { name, dims, isShapeTensor } of input) {
    const shape = inputs.get(name)?.shape;
    if (shape === undefined) continue;
    const hasRows = maxBatchSize > 0 && !isShapeTensor;
    const given = hasRows && axis === "added" ? shape.slice(1) : shape;
    const what = `input '${name}' of model '${modelName}'`;
    const fault = inputShapeFault(what, dims, given, hasRows ? axis : "none");
    if (fault !== undefined) return fault;
    if (hasRows && shape[0] === 0)
      return `${what}: expected at least one row, got shape ${shapeToString(shape)}`;
  }
  return undefined;
}

function withoutId(message: string): string {
  return message.startsWith(NO_ID) ? message.slice(NO_ID.length) : message;
}
