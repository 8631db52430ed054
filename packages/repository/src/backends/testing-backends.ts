import type {
  Backend,
  BackendFactory,
  ExecutableRequest,
  Execution,
  ExecutionResult,
  Executor,
} from "@tritonjs/core/backend";
import { type Clock, sleep } from "@tritonjs/core/extension";
import { DeclaredParameters, SHARED_PARAMETERS, type Tensors } from "@tritonjs/core/internal";
import {
  elementByteSize,
  elementCount,
  encodeBytes,
  errorFor,
  fromConfigDataType,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  shapeToString,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";

const IDENTITY_PARAMETERS = new DeclaredParameters({
  value: ["execute_delay_ms", "instance_wise_delay_multiplier", "creation_delay_sec"],
});

/**
 * The backend `identity`, for tests: `OUTPUT<i>` is `INPUT<i>`, after `execute_delay_ms`. The delay is multiplied by
 * the number of the instance and `instance_wise_delay_multiplier`, if given. `creation_delay_sec` delays loading.
 */
export const identityBackend: BackendFactory = IDENTITY_PARAMETERS.declaredBy(
  (): Backend => ({
    backendName: "identity",
    platform: "",
    describe: () => undefined,
    checkConfig: checkIdentityConfig,
    createExecutor: ({ info, clock, placement }) => {
      const { modelConfig } = info;
      if (placement.kind !== "KIND_CPU") {
        refuse("'identity' backend only supports CPU instances");
      }
      const multiplier = wholeNumber(modelConfig, "instance_wise_delay_multiplier");
      const delayMs =
        wholeNumber(modelConfig, "execute_delay_ms") * Math.max(1, multiplier * info.instanceIndex);
      return new IdentityExecutor(modelConfig, clock, delayMs);
    },
  }),
);

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
    const results = execution.requests.map((request) => {
      // Triton's backend reads the id as a number, for its log.
      return typeof request.correlationId === "string" ? textIdError(request) : this.#outputsOf(request);
    });
    if (!execution.decoupled) return results;
    for (const [i, result] of results.entries()) {
      if (TritonError.is(result)) execution.sendError(i, result, true);
      else execution.send(i, result, true);
    }
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

function textIdError({ id }: ExecutableRequest): TritonError {
  const request = `[request id: ${id === "" ? "<id_unknown>" : id}]`;
  return errorFor("INVALID_SEQUENCE", `${request} correlation ID in request is not an unsigned int`);
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

function checkIdentityConfig(config: ModelConfig): void {
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
  throw errorFor("INVALID_CONFIG", text);
}

/** Reads a whole number from a model's parameters; 0 when the parameter is absent. */
function wholeNumber(config: ModelConfig, key: Parameters<typeof IDENTITY_PARAMETERS.text>[1]): number {
  const text = IDENTITY_PARAMETERS.text({ config }, key) ?? "0";
  const value = Number(text);
  if (text.trim() === "" || !Number.isSafeInteger(value) || value < 0) {
    refuse(`parameter '${key}' of model '${config.name}': expected an integer of at least 0, got '${text}'`);
  }
  return value;
}

const REPEAT_INPUTS: readonly FixedTensor[] = [
  { name: "IN", dataType: "TYPE_INT32", size: "any" },
  { name: "DELAY", dataType: "TYPE_UINT32", size: "any" },
  { name: "WAIT", dataType: "TYPE_UINT32", size: "one" },
];

const REPEAT_OUTPUTS: readonly FixedTensor[] = [
  { name: "OUT", dataType: "TYPE_INT32", size: "one" },
  { name: "IDX", dataType: "TYPE_UINT32", size: "one" },
];

/**
 * The backend `repeat`, for tests of decoupled models. It sends one response for each element of `IN`, after the number
 * of milliseconds in `DELAY`. A model that is not decoupled sends the first one only. The instance is free after the `WAIT` milliseconds of its slowest request. A cancelled
 * request ends both at once, and so does the end of the model.
 */
export const repeatBackend: BackendFactory = SHARED_PARAMETERS.declaredBy(
  (): Backend => ({
    backendName: "repeat",
    platform: "",
    describe: () => undefined,
    checkConfig: checkRepeatConfig,
    createExecutor: ({ clock }) =>
      new RespondingExecutor(
        (execution, index) => repeat(clock, execution, index),
        (execution, signal) => sleep(clock, longestWait(execution), signal),
      ),
  }),
);

function checkRepeatConfig(config: ModelConfig): void {
  if (config.maxBatchSize !== 0) {
    refuse("repeat backend only supports models with max_batch_size == 0");
  }
  checkTensors(config, REPEAT_INPUTS, REPEAT_OUTPUTS);
  assertAlike(config.input[0]!.dims, config.input[1]!.dims);
}

function assertAlike(values: readonly number[], delays: readonly number[]): void {
  const [a, b] = [shapeToString(values), shapeToString(delays)];
  if (a !== b) {
    throw errorFor("INVALID_INPUT", `expected IN and DELAY shape to match, got ${a} and ${b}`);
  }
}

function longestWait({ requests }: Execution): number {
  return Math.max(0, ...requests.map(({ inputs }) => numbers(inputs.get("WAIT"))[0] ?? 0));
}

async function repeat(clock: Clock, execution: Execution, index: number): Promise<void> {
  const { inputs, signal } = execution.requests[index]!;
  const [values, delays] = [inputs.get("IN")!, inputs.get("DELAY")!];
  assertAlike(values.shape, delays.shape);
  const [elements, times] = [numbers(values), numbers(delays)];
  for (const [i, value] of elements.entries()) {
    await sleep(clock, times[i]!, signal);
    if (!execution.isOpen(index)) return;
    execution.send(
      index,
      new Map([
        ["OUT", Tensor.fromElements("INT32", [1], new Int32Array([value]))],
        ["IDX", Tensor.fromElements("UINT32", [1], new Uint32Array([i]))],
      ]),
      !execution.decoupled,
    );
    await execution.writable(index);
  }
}

function numbers(tensor: Tensor | undefined): number[] {
  return tensor === undefined ? [] : [...(tensor.elements as Int32Array | Uint32Array)];
}

const SQUARE_INPUTS: readonly FixedTensor[] = [{ name: "IN", dataType: "TYPE_INT32", size: "one" }];
const SQUARE_OUTPUTS: readonly FixedTensor[] = [{ name: "OUT", dataType: "TYPE_INT32", size: "one" }];

const SQUARE_PARAMETERS = new DeclaredParameters({
  value: ["CUSTOM_INFER_DELAY_NS", "CUSTOM_OUTPUT_DELAY_NS", "CUSTOM_FAIL_COUNT", "CUSTOM_EMPTY_COUNT"],
});

/**
 * The backend `square`, for tests of decoupled models. `IN` is the number of responses and the value of each. The
 * parameters `CUSTOM_INFER_DELAY_NS` and `CUSTOM_OUTPUT_DELAY_NS` delay each response. The last `CUSTOM_EMPTY_COUNT`
 * responses are left out, and the `CUSTOM_FAIL_COUNT` before them are errors.
 */
export const squareBackend: BackendFactory = SQUARE_PARAMETERS.declaredBy(
  (): Backend => ({
    backendName: "square",
    platform: "",
    describe: () => undefined,
    checkConfig: (config) => checkTensors(config, SQUARE_INPUTS, SQUARE_OUTPUTS),
    createExecutor: ({ clock, info }) => {
      const play = readParameters(info.modelConfig);
      return new RespondingExecutor((execution, index) => square(clock, play, execution, index));
    },
  }),
);

interface Play {
  readonly delayMs: number;
  readonly failures: number;
  readonly empty: number;
}

/** Parameters that are not numbers count as absent. */
function readParameters(config: ModelConfig): Play {
  const read = (key: Parameters<typeof SQUARE_PARAMETERS.text>[1]) => {
    const text = SQUARE_PARAMETERS.text({ config }, key) ?? "";
    return /^\d+$/.test(text) ? Number(text) : 0;
  };
  return {
    delayMs: (read("CUSTOM_INFER_DELAY_NS") + read("CUSTOM_OUTPUT_DELAY_NS")) / 1e6,
    failures: read("CUSTOM_FAIL_COUNT"),
    empty: read("CUSTOM_EMPTY_COUNT"),
  };
}

async function square(clock: Clock, play: Play, execution: Execution, index: number): Promise<void> {
  const { inputs, signal } = execution.requests[index]!;
  const input = inputs.get("IN")!;
  if (input.shape.length === 2 && input.shape[0] !== 1) {
    throw errorFor("INVALID_INPUT", "unexpected shape for IN input");
  }
  const count = (input.elements as Int32Array)[0] ?? 0;
  const shape = input.shape.map(() => 1);
  for (let i = 0; i < count; i++) {
    await sleep(clock, play.delayMs, signal);
    if (!execution.isOpen(index)) return;
    const left = count - i;
    if (left <= play.empty) continue;
    if (left <= play.empty + play.failures) {
      execution.sendError(index, new TritonError("UNKNOWN", "simulated failure"), !execution.decoupled);
    } else {
      const output = Tensor.fromElements("INT32", shape, new Int32Array([count]));
      execution.send(index, new Map([["OUT", output]]), !execution.decoupled);
    }
    await execution.writable(index);
  }
}

/** Runs a decoupled model whose instance is free before its responses are sent: each request has its own loop. */
class RespondingExecutor implements Executor {
  readonly details = {};
  readonly mustFinish = false;
  readonly takesAnyBatchSize = true;
  readonly #inFlight = new Set<Promise<void>>();
  readonly #stopped = new AbortController();

  /**
   * @param respond sends the responses to the request at `index` of a batch while the request is open
   * @param pause how long a batch keeps the instance; the signal ends it
   */
  constructor(
    private readonly respond: (execution: Execution, index: number) => Promise<void>,
    private readonly pause: (execution: Execution, signal: AbortSignal) => Promise<void> = async () => {},
  ) {}

  async start(): Promise<void> {}

  async execute(execution: Execution): Promise<undefined> {
    execution.inputsReady();
    for (const index of execution.requests.keys()) {
      const loop = this.#answer(execution, index);
      this.#inFlight.add(loop);
      void loop.finally(() => this.#inFlight.delete(loop));
    }
    await this.pause(execution, AbortSignal.any([execution.signal, this.#stopped.signal]));
    execution.outputsReady();
    return undefined;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.all(this.#inFlight);
  }

  async #answer(execution: Execution, index: number): Promise<void> {
    try {
      await this.respond(execution, index);
      if (execution.isOpen(index)) execution.finish(index);
    } catch (error) {
      execution.sendError(index, TritonError.from(error), true);
    }
  }
}

interface FixedTensor {
  readonly name: string;
  readonly dataType: string;
  /** Number of elements: one, or any. */
  readonly size: "one" | "any";
}

/** Checks that a model has exactly the tensors of its backend, with the words of Triton's example backends. */
function checkTensors(
  { input, output }: ModelConfig,
  inputs: readonly FixedTensor[],
  outputs: readonly FixedTensor[],
): void {
  checkCount("input", input, inputs);
  checkCount("output", output, outputs);
  const pairs = [
    ...inputs.map((expected, i) => ({ kind: "input", place: i, expected, got: input[i]! })),
    ...outputs.map((expected, i) => ({ kind: "output", place: i, expected, got: output[i]! })),
  ];
  for (const { kind, place, expected, got } of pairs) {
    if (got.name === expected.name) continue;
    refuse(`expected ${ORDINALS[place]} ${kind} tensor name to be ${expected.name}, got ${got.name}`);
  }
  for (const { expected, got } of pairs) checkShape(expected, got);
  for (const { expected, got } of pairs) {
    if (got.dataType === expected.dataType) continue;
    const type = expected.dataType.replace("TYPE_", "");
    refuse(`expected ${expected.name} datatype to be ${type}, got ${got.dataType}`);
  }
}

const ORDINALS = ["first", "second", "third"];

function checkCount(
  kind: string,
  got: readonly (ModelInput | ModelOutput)[],
  expected: readonly FixedTensor[],
): void {
  if (got.length === expected.length) return;
  refuse(`expected ${expected.length} ${kind}${expected.length === 1 ? "" : "s"}, got ${got.length}`);
}

function checkShape({ name, size }: FixedTensor, { dims }: ModelInput | ModelOutput): void {
  const shape = shapeToString(dims);
  if (size === "any" && dims.length !== 1)
    refuse(`expected ${name} shape to have one dimension, got ${shape}`);
  if (size === "one" && shape !== "[1]") refuse(`expected ${name} shape to be [1], got ${shape}`);
}
