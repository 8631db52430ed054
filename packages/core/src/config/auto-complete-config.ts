import {
  type DataType,
  keyList,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  type TensorSpec,
  TritonError,
  toConfigDataType,
} from "@tritonjs/protocol";
import { defaultDynamicBatching, emptyModelInput, emptyModelOutput } from "@tritonjs/protocol/config";

/** A tensor that the `autoCompleteConfig` of a model adds. */
export interface AutoCompleteTensor {
  readonly name: string;
  /** Data type of the v2 protocol (`FP32`), or as in a configuration (`TYPE_FP32`). */
  readonly dataType: string;
  /** Dimensions without the batch axis if the model batches; -1 for any size. */
  readonly dims: readonly number[];
  /** Whether requests may leave the tensor out. Inputs only. */
  readonly optional?: boolean;
}

const INPUT_KEYS = keyList<AutoCompleteTensor>({ name: true, dataType: true, dims: true, optional: true });
const OUTPUT_KEYS = INPUT_KEYS.filter((key) => key !== "optional");

/**
 * The configuration of a model while the model completes it. Written fields stay as they are, and contradicting them is
 * an error. Every error is a TritonError INTERNAL, with the text of Triton's Python backend.
 *
 * @example
 * ```ts
 * export function autoCompleteConfig(config: AutoCompleteConfig) {
 *   config.addInput({ name: "x", dataType: "FP32", dims: [4] });
 *   config.addOutput({ name: "y", dataType: "FP32", dims: [1] });
 *   config.setMaxBatchSize(8);
 *   config.setDynamicBatching();
 * }
 * ```
 */
export class AutoCompleteConfig {
  #config: ModelConfig;

  constructor(prepared: ModelConfig) {
    this.#config = structuredClone(prepared);
  }

  /** The configuration as completed so far. */
  get config(): ModelConfig {
    return structuredClone(this.#config);
  }

  /**
   * Sets the largest number of rows in a batch.
   *
   * @throws TritonError when a larger one is written
   */
  setMaxBatchSize(maxBatchSize: number): void {
    const { maxBatchSize: written, name } = this.#config;
    if (written > maxBatchSize) {
      fail(
        `configuration specified max_batch_size ${written}, but in auto-complete-config function for model '${name}' ` +
          `specified max_batch_size ${maxBatchSize}`,
      );
    }
    this.#config.maxBatchSize = maxBatchSize;
  }

  /**
   * Enables dynamic batching, with the written settings if there are any.
   *
   * @throws TritonError when another scheduler is written
   */
  setDynamicBatching(): void {
    const { sequenceBatching, ensembleScheduling, name } = this.#config;
    if (sequenceBatching !== undefined || ensembleScheduling !== undefined) {
      fail(
        `Configuration specified scheduling_choice as '${sequenceBatching ? "sequence_batching" : "ensemble_scheduling"}', ` +
          `but auto-complete-config function for model '${name}' tries to set scheduling_choice as 'dynamic_batching'`,
      );
    }
    this.#config.dynamicBatching ??= defaultDynamicBatching();
  }

  /** Adds an input, or fills the missing fields of a written one. @throws TritonError when it contradicts that one */
  addInput(tensor: AutoCompleteTensor): void {
    this.#check(tensor, "input", INPUT_KEYS);
    const { name, optional } = tensor;
    const written = this.#config.input.find((one) => one.name === name);
    const input = this.#complete(this.#config.input, tensor, "input", emptyModelInput);
    if (optional === undefined) return;
    if (written !== undefined && written.optional !== optional) {
      fail(
        `model '${this.#config.name}', tensor '${name}': the model expects optional ${python(optional)} but the model ` +
          `configuration specifies optional ${python(written.optional)}`,
      );
    }
    input.optional = optional;
  }

  /** Adds an output, or fills the missing fields of a written one. @throws TritonError when it contradicts that one */
  addOutput(tensor: Omit<AutoCompleteTensor, "optional">): void {
    this.#check(tensor, "output", OUTPUT_KEYS);
    this.#complete(this.#config.output, tensor, "output", emptyModelOutput);
  }

  /** Sets whether a request may have any number of responses. @throws TritonError when the opposite is written */
  setModelTransactionPolicy(policy: { readonly decoupled?: boolean }): void {
    const { modelTransactionPolicy: written, name } = this.#config;
    if (Object.keys(policy).some((key) => key !== "decoupled")) {
      fail(
        `model transaction property in auto-complete-config function for model '${name}' contains property other than ` +
          "'decoupled'.",
      );
    }
    if (policy.decoupled === undefined) return;
    if (written !== undefined && written.decoupled !== policy.decoupled) {
      fail(
        `trying to change decoupled property in auto-complete-config for model '${name}', which is already set to ` +
          `'${python(written.decoupled)}'.`,
      );
    }
    this.#config.modelTransactionPolicy = { decoupled: policy.decoupled };
  }

  #check(tensor: AutoCompleteTensor, kind: "input" | "output", known: readonly string[]): void {
    const where = `in auto-complete-config function for model '${this.#config.name}'`;
    const label = `${kind} '${tensor.name}' ${where}`;
    if (Object.keys(tensor).some((key) => !known.includes(key))) {
      const names = known.map((key) => `'${snakeCase(key)}'`);
      fail(`${label} contains property other than ${names.slice(0, -1).join(", ")} and ${names.at(-1)}.`);
    }
    if (tensor.name === undefined) fail(`${kind} ${where} is missing 'name' property.`);
    for (const key of ["dataType", "dims"] as const) {
      if (tensor[key] === undefined) fail(`${label} is missing '${snakeCase(key)}' property.`);
    }
  }

  #complete<T extends ModelInput | ModelOutput>(
    tensors: T[],
    tensor: AutoCompleteTensor,
    kind: "input" | "output",
    empty: () => T,
  ): T {
    const model = this.#config.name;
    const { name } = tensor;
    const dataType = tensor.dataType.startsWith("TYPE_")
      ? tensor.dataType
      : toConfigDataType(tensor.dataType as DataType);
    let written = tensors.find((one) => one.name === name);
    if (written === undefined) {
      written = { ...empty(), name };
      tensors.push(written);
    } else if (written.dataType !== "TYPE_INVALID" && written.dataType !== dataType) {
      fail(
        `unable to load model '${model}', configuration expects datatype ${written.dataType} for ${kind} '${name}', ` +
          `model provides ${dataType}`,
      );
    } else if (written.dims.length > 0 && String(written.dims) !== String(tensor.dims)) {
      fail(
        `model '${model}', tensor '${name}': the model expects dims ${list(tensor.dims)} but the model configuration ` +
          `specifies dims ${list(written.dims)}`,
      );
    }
    written.dataType = dataType;
    written.dims = tensor.dims.map(Number);
    return written;
  }
}

/** A method that completes the configuration. */
export type CompletionMethod = Exclude<keyof AutoCompleteConfig, "config">;

export const COMPLETION_METHODS = keyList<Pick<AutoCompleteConfig, CompletionMethod>>({
  setMaxBatchSize: true,
  setDynamicBatching: true,
  addInput: true,
  addOutput: true,
  setModelTransactionPolicy: true,
});

/** Calls a method with an argument from a model, which may be any value. */
export function completeBy(config: AutoCompleteConfig, method: CompletionMethod, argument: unknown): void {
  const complete: (this: AutoCompleteConfig, argument: never) => void = config[method];
  Reflect.apply(complete, config, [argument]);
}

/** Largest batch of a step of a repository whose configuration does not set it. */
const STEP_BATCH_SIZE = 32;

/**
 * Completes the configuration of a step whose backend knows its tensors. A model without written tensors batches, with
 * the written size or 32. If tensors are written and `max_batch_size` is 0, requests have no batch axis.
 *
 * @param inputs tensors without the batch axis
 * @param outputs tensors without the batch axis
 * @throws TritonError INTERNAL if a written field contradicts them
 */
export function completeStep(
  config: AutoCompleteConfig,
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
): void {
  const { input, output, maxBatchSize, sequenceBatching } = config.config;
  if (maxBatchSize === 0 && input.length + output.length === 0) config.setMaxBatchSize(STEP_BATCH_SIZE);
  if (config.config.maxBatchSize > 1 && sequenceBatching === undefined) config.setDynamicBatching();
  for (const { name, dtype, shape } of inputs) config.addInput({ name, dataType: dtype, dims: shape });
  for (const { name, dtype, shape } of outputs) config.addOutput({ name, dataType: dtype, dims: shape });
}

/** Writes a boolean as Triton's Python backend does. */
function python(value: boolean): string {
  return value ? "True" : "False";
}

function list(dims: readonly number[]): string {
  return `[${dims.join(", ")}]`;
}

function snakeCase(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function fail(message: string): never {
  throw new TritonError("INTERNAL", message);
}
