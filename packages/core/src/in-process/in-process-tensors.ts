import {
  errorFor,
  errorWithoutStack,
  fromConfigDataType,
  inputNamesFault,
  inputShapeFault,
  type ModelConfig,
  NO_PARAMETERS,
  ndArrayOf,
  type ReasonOf,
  type Shape,
  shapeToString,
  Tensor,
  TritonError,
  tensorFromValue,
  type ValueTarget,
} from "@tritonjs/protocol";
import type { ModelVersion } from "../model/model-version.js";
import { type InferenceResponse, withParameters } from "../request/inference-response.js";
import { getOrAdd } from "../system/collections.js";
import { copyTensor } from "../tensor-rows.js";

/*
 * Converts values of a program to tensors and back. Inputs are copied on the way in and outputs on the way out, so that
 * neither side sees later changes of the other.
 */

/** Meaning of the batch axis: "given" with the values, or "added" to one sample and removed from its results. */
export type CallBatchAxis = "given" | "added";

/** Values by input name, in any form that a tensor can be given in. */
export type InputValues = Readonly<Record<string, unknown>>;

export type OutputArrays = Record<string, ReturnType<typeof ndArrayOf>>;

/** Placeholder for an input that the model does not have. The request validation then names the input. */
const UNKNOWN_INPUT = Tensor.fromElements("BYTES", [1], [new Uint8Array()]);

/**
 * Converts values to tensors. Numbers are copied once: a tensor that was made of a list has memory of its own.
 *
 * @param model a tensor on a GPU is not copied for a model that takes such tensors
 * @param added whether the values are one sample, to which the batch axis is added
 * @throws TritonError INVALID_ARG for a value that cannot become a tensor of the input's data type.
 */
export function toTensors(
  model: Pick<ModelVersion, "config" | "takesSources" | "checkInput">,
  values: InputValues,
  added: boolean,
): Map<string, Tensor> {
  const { config, checkInput } = model;
  if (typeof values !== "object" || values === null) {
    const got = values === null ? "null" : typeof values;
    throw errorFor(
      "INVALID_INPUT",
      `inputs of model '${config.name}': expected an object with a value for each input, got ${got}`,
    );
  }
  const targets = targetsOf(config);
  const tensors = new Map<string, Tensor>();
  for (const name of Object.keys(values)) {
    const value = values[name];
    if (value === undefined) continue;
    const target = targets.get(name);
    if (target === undefined) {
      tensors.set(name, UNKNOWN_INPUT);
      continue;
    }
    const checkShape = checkInput && ((given: Shape) => checkInput(name, given));
    const tensor = tensorFromValue(value, added ? target.sample : target.whole, checkShape);
    const shape = added && target.hasRows ? rowOf(tensor.shape, target) : tensor.shape;
    const isOwn = Array.isArray(value) && tensor.datatype !== "BYTES";
    const stays = isOwn || (tensor.source !== undefined && model.takesSources);
    tensors.set(name, stays ? tensor.reshaped(shape) : copyTensor(tensor, shape));
  }
  return tensors;
}

/** Shape of one sample with the batch axis. Where all dimensions are known, all requests share one array. */
function rowOf(shape: Shape, { sample, row }: InputTarget): Shape {
  return shape === sample.shape ? row : [1, ...shape];
}

interface InputTarget {
  readonly hasRows: boolean;
  /** Target with the batch axis, if the model has one, and without it. */
  readonly whole: ValueTarget;
  readonly sample: ValueTarget;
  /** Shape of one sample with the batch axis. */
  readonly row: Shape;
}

/** The inputs of each model, kept because every request needs them. */
const targetsOfConfig = new WeakMap<ModelConfig, ReadonlyMap<string, InputTarget>>();

function targetsOf(config: ModelConfig): ReadonlyMap<string, InputTarget> {
  return getOrAdd(
    targetsOfConfig,
    config,
    () =>
      new Map(
        config.input.map(({ name, dataType, dims, isShapeTensor }) => {
          const hasRows = config.maxBatchSize > 0 && !isShapeTensor;
          const what = `input '${name}' of model '${config.name}'`;
          const sample = { what, datatype: fromConfigDataType(dataType)!, shape: dims, takesScalar: true };
          const whole = hasRows ? { ...sample, shape: [-1, ...dims] } : sample;
          return [name, { hasRows, sample, whole, row: [1, ...dims] }];
        }),
      ),
  );
}

export function toArrays(
  response: InferenceResponse,
  added: boolean,
  config: ModelConfig,
  tensors?: readonly string[],
): OutputArrays {
  const arrays: OutputArrays = {};
  for (const [name, tensor] of response.outputs) {
    if (tensors?.includes(name)) {
      // The caller asked for tensors by these names, and types its outputs itself.
      (arrays as Record<string, unknown>)[name] = tensor;
      continue;
    }
    const shape = added ? sampleShape(config, name, tensor.shape) : tensor.shape;
    arrays[name] = ndArrayOf(tensor.copyElements(), shape, tensor.datatype, "output", name, config.name);
  }
  const { parameters } = response;
  return parameters === NO_PARAMETERS ? arrays : withParameters(arrays, parameters);
}

/** Shape of an output for one sample. Where all dimensions are known, it is that of the configuration. */
function sampleShape({ output }: ModelConfig, name: string, shape: Shape): Shape {
  for (const declared of output) {
    if (declared.name !== name) continue;
    if (declared.isShapeTensor) return shape;
    if (!declared.dims.includes(-1)) return declared.dims;
  }
  return shape.slice(1);
}

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
  if (!TritonError.is(thrown)) return thrown;
  const text = thrown.code === "INVALID_ARG" ? faultOf(thrown.reason, config, inputs, axis) : undefined;
  if (text === undefined) return withoutUnknownId(thrown);
  return new TritonError("INVALID_ARG", text, { reason: thrown.reason as ReasonOf<"INVALID_ARG"> });
}

/** Beginning of Triton's texts about a request without an id. */
const NO_ID = "[request id: <id_unknown>] ";

/** The error of a request of this process: it names the id of a request only if the caller gave one. */
export function withoutUnknownId(error: TritonError): TritonError {
  const { code, message, reason, cause, retryAfterMs } = error;
  if (!message.startsWith(NO_ID)) return error;
  return errorWithoutStack(code, message.slice(NO_ID.length), {
    reason,
    ...(cause !== undefined && { cause }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
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
