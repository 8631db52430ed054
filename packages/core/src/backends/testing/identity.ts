import {
  elementByteSize,
  elementCount,
  encodeBytes,
  fromConfigDataType,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  shapeToString,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";
import type { Tensors } from "../../batch/merge-inputs.js";
import type { Clock } from "../../clock/clock.js";
import { sleep } from "../../clock/sleep.js";

import type { Backend, BackendFactory } from "../../instance/backend.js";
import type { ExecutableRequest, Execution, ExecutionResult, Executor } from "../../instance/executor.js";

/**
 * The backend `identity`, for tests: `OUTPUT<i>` is `INPUT<i>`, after `execute_delay_ms`. The delay is multiplied by
 * the number of the instance and `instance_wise_delay_multiplier`, if given. `creation_delay_sec` delays loading.
 */
export const identityBackend: BackendFactory = (): Backend => ({
  backendName: "identity",
  platform: "",
  describe: () => undefined,
  checkConfig,
  createExecutor: ({ info, clock, placement }) => {
    const { modelConfig } = info;
    if (placement.kind !== "KIND_CPU") {
      throw new TritonError("INVALID_ARG", "'identity' backend only supports CPU instances", {
        reason: "INVALID_CONFIG",
      });
    }
    const multiplier = wholeNumber(modelConfig, "instance_wise_delay_multiplier");
    const delayMs =
      wholeNumber(modelConfig, "execute_delay_ms") * Math.max(1, multiplier * info.instanceIndex);
    return new IdentityExecutor(modelConfig, clock, delayMs);
  },
});

class IdentityExecutor implements Executor {
  readonly details = {};
  readonly mustFinish = false;
  readonly takesAnyBatchSize = true;

  constructor(
    private readonly config: ModelConfig,
    private readonly clock: Clock,
    private readonly delayMs: number,
  ) {}

  async start(): Promise<void> {
    await sleep(this.clock, 1000 * wholeNumber(this.config, "creation_delay_sec"));
  }

  async execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    execution.inputsReady();
    if (this.delayMs > 0) await sleep(this.clock, this.delayMs, execution.signal);
    execution.outputsReady();
    const results = execution.requests.map((request) => this.#outputsOf(request));
    if (!execution.decoupled) return results;
    for (const [i, outputs] of results.entries()) execution.send(i, outputs, true);
    return undefined;
  }

  async stop(): Promise<void> {}

  #outputsOf({ inputs, requestedOutputs, rows }: ExecutableRequest): Tensors {
    const outputs = new Map<string, Tensor>();
    for (const output of this.config.output) {
      if (requestedOutputs.length > 0 && !requestedOutputs.includes(output.name)) continue;
      const input = inputs.get(inputFor(output));
      outputs.set(output.name, input ?? zeros(output, this.config.maxBatchSize > 0 ? [rows] : []));
    }
    return outputs;
  }
}

/** The output for an input that the request leaves out. */
function zeros({ dataType, dims }: ModelOutput, batch: readonly number[]): Tensor {
  const datatype = fromConfigDataType(dataType)!;
  const shape = [...batch, ...dims.map((dim) => Math.max(1, dim))];
  const count = elementCount(shape);
  const bytes =
    datatype === "BYTES"
      ? encodeBytes(Array.from({ length: count }, () => new Uint8Array()))
      : new Uint8Array(count * elementByteSize(datatype));
  return Tensor.fromBytes(datatype, shape, bytes);
}

function inputFor({ name }: { readonly name: string }): string {
  return `INPUT${name.slice("OUTPUT".length)}`;
}

function checkConfig(config: ModelConfig): void {
  const { input, output } = config;
  if (input.length !== output.length) refuse("model configuration must have equal input/output pairs");
  for (const [i, { name }] of input.entries()) {
    if (!name.startsWith("INPUT"))
      refuse(`expected input name to follow INPUT<index> pattern, got '${name}'`);
    const other = output[i]!.name;
    if (!other.startsWith("OUTPUT"))
      refuse(`expected output name to follow OUTPUT<index> pattern, got '${other}'`);
  }
  for (const one of output) {
    const pair = input.find(({ name }) => name === inputFor(one));
    if (pair === undefined) refuse("expected input and output indices to match");
    if (pair.dataType !== one.dataType) {
      refuse(`expected input and output datatype to match, got ${pair.dataType} and ${one.dataType}`);
    }
    const [a, b] = [shapeOf(pair), shapeOf(one)];
    if (a !== b) refuse(`expected input and output shape to match, got ${a} and ${b}`);
  }
  wholeNumber(config, "execute_delay_ms");
  wholeNumber(config, "instance_wise_delay_multiplier");
  wholeNumber(config, "creation_delay_sec");
}

function shapeOf({ dims, reshape }: ModelInput | ModelOutput): string {
  return shapeToString(reshape?.shape ?? dims);
}

function refuse(text: string): never {
  throw new TritonError("INVALID_ARG", text, { reason: "INVALID_CONFIG" });
}

/**
 * Reads a whole number from a model's parameters. Returns 0 when the parameter is absent.
 *
 * @throws TritonError INVALID_ARG for any other value.
 */
function wholeNumber({ name, parameters }: ModelConfig, key: string): number {
  const text = parameters[key]?.stringValue ?? "0";
  const value = Number(text);
  if (text.trim() === "" || !Number.isSafeInteger(value) || value < 0) {
    throw new TritonError(
      "INVALID_ARG",
      `parameter '${key}' of model '${name}': expected an integer of at least 0, got '${text}'`,
      { reason: "INVALID_CONFIG" },
    );
  }
  return value;
}
