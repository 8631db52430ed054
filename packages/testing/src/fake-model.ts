import type {
  BackendFactory,
  ExecutableRequest,
  Execution,
  ExecutionResult,
  Executor,
  ExecutorContext,
  TypedBackend,
} from "@tritonjs/core/backend";
import { concatRows, sleep, sliceRows, type Tensors } from "@tritonjs/core/internal";
import {
  assertOptions,
  elementCount,
  errorFor,
  floatWriter,
  fromConfigDataType,
  type InputsOf,
  inputNamesFault,
  type ModelConfig,
  type ModelOutput,
  type OutputsOf,
  optionTypes,
  type PlainTensor,
  Tensor,
  type TensorSpec,
  TritonError,
  tensorDifference,
  tensorFromValue,
  tensorOfPlain,
  toNdArray,
  typedArrayFor,
} from "@tritonjs/protocol";
import { type Fault, Faults } from "./faults.js";

/** A call and its answers, as recordings have them. Tensors have the batch axis if the model has one. */
export interface RecordedAnswer {
  readonly inputs: Readonly<Record<string, PlainTensor>>;
  /** The outputs of each response. A model that is not decoupled has one. */
  readonly responses: readonly Readonly<Record<string, PlainTensor>>[];
}

/** How a fake model answers. */
export interface FakeAnswers<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> {
  /**
   * Computes the outputs of one sample, without the batch axis. A decoupled model returns a list: the outputs of each
   * response. @default zeros and empty strings in the shapes of the outputs
   */
  readonly answer?: (inputs: InputsOf<I>) => FakeOutputs<O> | Promise<FakeOutputs<O>>;
  /** Answers by inputs. A request with other inputs fails, and the error says which recorded call is the nearest. */
  readonly recorded?: readonly RecordedAnswer[];
  /** Milliseconds that a batch takes on the clock of the server. @default 0 */
  readonly delayMs?: number;
  /** Faults, which the test turns on and off. */
  readonly faults?: Faults;
}

type FakeOutputs<O extends readonly TensorSpec[]> = OutputsOf<O> | readonly OutputsOf<O>[];

/** Options of {@link fakeModel}. */
export interface FakeModelOptions<I extends readonly TensorSpec[], O extends readonly TensorSpec[]>
  extends FakeAnswers<I, O> {
  /** Inputs without the batch axis, as `bind` takes them. */
  readonly inputs: I;
  /** Outputs without the batch axis. */
  readonly outputs: O;
  /** Whether requests get any number of responses. @default false */
  readonly decoupled?: boolean;
}

type AnyAnswers = FakeAnswers<readonly TensorSpec[], readonly TensorSpec[]>;

const ANSWER_TYPES = optionTypes<AnyAnswers>({
  answer: "function",
  recorded: "array",
  delayMs: "number",
  faults: "object",
});

/**
 * Makes a model that computes nothing, for tests of what calls it. It is bound as a backend, so requests pass the same
 * checks, queue and batcher as those of the real model. As with any backend, `config.batching` or `config.maxBatchSize`
 * gives it a batch axis.
 *
 * @throws TritonError INVALID_ARG for unknown options.
 * @example
 * ```ts
 * const clock = new VirtualClock();
 * const triton = new Triton({ clock });
 * const scorer = triton.bind({
 *   modelName: "scorer",
 *   inferFunc: fakeModel({
 *     inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
 *     outputs: [{ name: "score", dtype: "FP32", shape: [1] }],
 *     answer: ({ x }) => ({ score: [x.get(0)] }),
 *   }),
 * });
 * ```
 */
export function fakeModel<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
  options: FakeModelOptions<I, O>,
): TypedBackend<I, O> {
  assertOptions("fakeModel()", options, {
    ...ANSWER_TYPES,
    inputs: "array",
    outputs: "array",
    decoupled: "boolean",
  });
  const { inputs, outputs, decoupled = false } = options;
  return {
    backendName: "fake",
    platform: "",
    describe: () => ({ inputs, outputs, decoupled, asInConfig: true }),
    createExecutor: (context) => new FakeExecutor(context, options as unknown as AnyAnswers),
  };
}

/**
 * Makes a backend for a model repository whose models compute nothing. Their tensors are those of their configurations.
 *
 * @param answers answers by the name of the model; zeros and empty strings for a model that is not listed
 * @example
 * ```ts
 * const backends = { onnxruntime: fakeBackend() };
 * const triton = new Triton({ extensions: [repository({ modelRepository: "models", backends })] });
 * ```
 */
export function fakeBackend(answers: Readonly<Record<string, AnyAnswers>> = {}): BackendFactory {
  for (const [name, own] of Object.entries(answers))
    assertOptions(`fakeBackend() for '${name}'`, own, ANSWER_TYPES);
  return ({ name }) => ({
    backendName: "fake",
    platform: "",
    describe: () => undefined,
    createExecutor: (context) =>
      new FakeExecutor(context, Object.hasOwn(answers, name) ? answers[name]! : {}),
  });
}

class FakeExecutor implements Executor {
  readonly isolation = "inline";
  readonly details = {};
  readonly mustFinish = false;
  readonly restarts = { count: 0 };
  onHealth: Executor["onHealth"];
  readonly #config: ModelConfig;
  readonly #name: string;
  readonly #recorded: readonly RecordedCall[];
  readonly #faults: Faults;

  constructor(
    private readonly context: ExecutorContext,
    private readonly answers: AnyAnswers,
  ) {
    const { info } = context;
    this.#config = info.modelConfig;
    this.#name = `instance '${info.instanceName}' of model '${info.modelName}'`;
    this.#recorded = (answers.recorded ?? []).map((call, i) => readRecorded(info.modelName, call, i));
    this.#faults = answers.faults ?? new Faults();
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {}

  async execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    const { clock } = this.context;
    const fault = this.#faults.take();
    execution.inputsReady();
    const delayMs = (this.answers.delayMs ?? 0) + (fault?.name === "late" ? (fault.delayMs ?? 1_000) : 0);
    if (delayMs > 0) await sleep(clock, delayMs, execution.signal);
    this.#fail(fault);
    const results = await Promise.all(execution.requests.map((request) => this.#responses(request)));
    execution.outputsReady();
    if (!execution.decoupled) {
      return results.map((responses, i) => {
        if (TritonError.is(responses)) return responses;
        if (fault?.name === "cut-stream") return this.#cut();
        return this.#spoiled(responses[0]!, fault, execution.requests[i]!.rows);
      });
    }
    for (const [i, responses] of results.entries()) await this.#stream(execution, i, responses, fault);
    return undefined;
  }

  #fail(fault: Fault | undefined): void {
    if (fault?.name === "out-of-memory") {
      // The words of ONNX Runtime.
      throw errorFor("INTERNAL", `${this.#name}: Failed to allocate memory for requested buffer`);
    }
    if (fault?.name !== "crash") return;
    this.restarts.count++;
    this.onHealth?.(false);
    this.context.clock.setTimer(fault.delayMs ?? 0, () => this.onHealth?.(true));
    throw errorFor("WORKER_CRASHED", `${this.#name} crashed: the test said so`);
  }

  #cut(): TritonError {
    return errorFor("CONNECTION_FAILED", `${this.#name}: the stream was cut`);
  }

  async #stream(
    execution: Execution,
    index: number,
    responses: readonly Tensors[] | TritonError,
    fault: Fault | undefined,
  ): Promise<void> {
    if (TritonError.is(responses)) {
      execution.sendError(index, responses, true);
      return;
    }
    const cutAt = fault?.name === "cut-stream" ? (fault.responses ?? 1) : Number.POSITIVE_INFINITY;
    for (const [i, outputs] of responses.entries()) {
      if (!execution.isOpen(index)) return;
      if (i >= cutAt) break;
      const result = this.#spoiled(outputs, fault, execution.requests[index]!.rows);
      if (TritonError.is(result)) execution.sendError(index, result, true);
      else execution.send(index, result);
      await execution.writable(index);
    }
    if (!execution.isOpen(index)) return;
    if (cutAt <= responses.length) execution.sendError(index, this.#cut(), true);
    else execution.finish(index);
  }

  /** The outputs of each response, in the form of a request: with the batch axis if the model has one. */
  async #responses(request: ExecutableRequest): Promise<readonly Tensors[] | TritonError> {
    try {
      if (this.answers.recorded !== undefined)
        return answerOf(this.#recorded, this.#config.name, request.inputs);
      const { maxBatchSize } = this.#config;
      if (maxBatchSize === 0) return await this.#answersOf(request.inputs);
      const rows = await Promise.all(
        Array.from({ length: request.rows }, (_, row) => this.#answersOf(rowOf(request.inputs, row))),
      );
      const counts = rows.map(({ length }) => length);
      if (counts.some((count) => count !== counts[0])) {
        throw errorFor(
          "INVALID_OUTPUT",
          `fake model '${this.#config.name}': rows have ${counts.join(", ")} responses`,
        );
      }
      return Array.from({ length: counts[0] ?? 0 }, (_, i) =>
        joinRows(rows.map((responses) => responses[i]!)),
      );
    } catch (error) {
      return TritonError.from(error);
    }
  }

  /** The outputs of each response to one sample. */
  async #answersOf(inputs: Tensors): Promise<readonly Tensors[]> {
    const { answer } = this.answers;
    const { name, output } = this.#config;
    if (answer === undefined) return [new Map(output.map((one) => [one.name, zeros(one)]))];
    const arrays = Object.fromEntries(
      [...inputs].map(([input, tensor]) => [input, toNdArray(tensor, "input", input, name)]),
    );
    const given = (await answer(arrays as never)) as object | readonly object[];
    const responses = Array.isArray(given) ? given : [given];
    return responses.map((values) => this.#tensorsOf(values as Record<string, unknown>));
  }

  #tensorsOf(values: Readonly<Record<string, unknown>>): Tensors {
    const { name, output } = this.#config;
    const fault = inputNamesFault(
      name,
      output.map((one) => ({ name: one.name, optional: false })),
      Object.keys(values ?? {}),
    );
    if (fault !== undefined) throw errorFor("INVALID_OUTPUT", fault.replaceAll("input", "output"));
    return new Map(
      output.map((one) => {
        const what = `output '${one.name}' of fake model '${name}'`;
        const datatype = fromConfigDataType(one.dataType)!;
        return [
          one.name,
          tensorFromValue(values[one.name], { what, datatype, shape: one.dims, takesScalar: true }),
        ];
      }),
    );
  }

  /** The outputs with the fault of the batch, checked as those of any backend. */
  #spoiled(outputs: Tensors, fault: Fault | undefined, rows: number): Tensors | TritonError {
    const given = new Map(outputs);
    for (const [name, tensor] of outputs) {
      if (fault?.name === "nan") given.set(name, notNumbers(tensor));
      if (fault?.name === "wrong-shape") given.set(name, tensor.reshaped([...tensor.shape, 1]));
    }
    try {
      return this.context.checker.check(given, rows, []);
    } catch (error) {
      return TritonError.from(error);
    }
  }
}

function rowOf(inputs: Tensors, row: number): Tensors {
  return new Map(
    [...inputs].map(([name, tensor]) => [name, sliceRows(tensor, row, 1).reshaped(tensor.shape.slice(1))]),
  );
}

function joinRows(rows: readonly Tensors[]): Tensors {
  return new Map(
    [...rows[0]!.keys()].map((name) => {
      const tensors = rows.map((outputs) => outputs.get(name)!);
      return [name, concatRows(tensors.map((tensor) => tensor.reshaped([1, ...tensor.shape])))];
    }),
  );
}

/** Zeros, or empty strings, in the shape of an output. A dynamic dimension is 1. */
function zeros({ dataType, dims }: ModelOutput): Tensor {
  const datatype = fromConfigDataType(dataType)!;
  const shape = dims.map((dim) => Math.max(1, dim));
  const count = elementCount(shape);
  if (datatype === "BYTES") {
    return Tensor.fromElements(
      datatype,
      shape,
      Array.from({ length: count }, () => new Uint8Array()),
    );
  }
  return Tensor.fromElements(datatype, shape, new (typedArrayFor(datatype))(count));
}

function notNumbers(tensor: Tensor): Tensor {
  const { datatype, shape } = tensor;
  if (!/^(FP|BF)/.test(datatype) || datatype === "BYTES") return tensor;
  const elements = new (typedArrayFor(datatype))(tensor.elements.length) as Float32Array;
  elements.fill(floatWriter(datatype)?.(Number.NaN) ?? Number.NaN);
  return Tensor.fromElements(datatype, shape, elements);
}

interface RecordedCall {
  readonly inputs: Tensors;
  readonly responses: readonly Tensors[];
}

function readRecorded(model: string, { inputs, responses }: RecordedAnswer, index: number): RecordedCall {
  const read = (tensors: Readonly<Record<string, PlainTensor>>, kind: string): Tensors =>
    new Map(
      Object.entries(tensors).map(([name, plain]) => {
        const what = `${kind} '${name}' of call ${index + 1} recorded for model '${model}'`;
        return [name, tensorOfPlain(plain, what)];
      }),
    );
  return { inputs: read(inputs, "input"), responses: responses.map((outputs) => read(outputs, "output")) };
}

function answerOf(calls: readonly RecordedCall[], model: string, inputs: Tensors): readonly Tensors[] {
  let nearest: { readonly text: string; readonly same: number } | undefined;
  for (const [i, { inputs: recorded, responses }] of calls.entries()) {
    const names = new Set([...recorded.keys(), ...inputs.keys()]);
    const faults = [...names].flatMap((name) => {
      const [actual, expected] = [inputs.get(name), recorded.get(name)];
      if (actual === undefined || expected === undefined) {
        return [`input '${name}' is ${actual === undefined ? "missing" : "not in the recorded call"}`];
      }
      const difference = tensorDifference(actual, expected);
      return difference === undefined ? [] : [`input '${name}': ${difference}`];
    });
    if (faults.length === 0) return responses;
    const same = names.size - faults.length;
    if (nearest === undefined || same > nearest.same) {
      nearest = { same, text: `; the nearest is call ${i + 1}: ${faults.join("; ")}` };
    }
  }
  throw errorFor(
    "INVALID_INPUT",
    `fake model '${model}': none of its ${calls.length} recorded calls has these inputs${nearest?.text ?? ""}`,
  );
}
