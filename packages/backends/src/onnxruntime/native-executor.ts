import { divideOutputs, type Execution, type ExecutionResult, type Executor } from "@tritonjs/core/backend";
import {
  type Allocate,
  type Clock,
  type InstanceInfo,
  joinInputsIn,
  type OutputChecker,
  type Tensors,
  totalRows,
} from "@tritonjs/core/internal";
import {
  type DataType,
  type Elements,
  elementCount,
  errorOf,
  fromOnnxType,
  type InstanceHosting,
  type ModelConfig,
  Tensor,
  TritonError,
  toOnnxType,
  typedArrayFor,
} from "@tritonjs/protocol";
import {
  callAsync,
  type NativeSession,
  type NativeTensor,
  openNativeSession,
  runLane,
  SharedSession,
  typeAndShape,
} from "./native-session.js";
import type { SessionData } from "./onnx-options.js";
import type { OrtApi } from "./ort-c-api.js";
import { outputNamesOf, scalarInputs, scalarOutputs } from "./ort-tensors.js";

/** The parts of a server that an instance needs. */
interface NativeSurroundings {
  readonly info: InstanceInfo;
  readonly checker: OutputChecker;
  readonly clock: Clock;
  readonly hosting: InstanceHosting;
}

interface NativeContext extends NativeSurroundings {
  /** Gives up the session that was opened to describe the model, if there is one. May be called more than once. */
  readonly dropOpened: () => Promise<void>;
}

/**
 * Runs batches through ONNX Runtime's C interface, on threads of libuv's pool. All instances of a model share one
 * session. A batch ends early when all its requests are cancelled, and when it exceeds the execution time limit.
 */
class NativeExecutor implements Executor, RunningInstance {
  /** A running batch can be ended. */
  readonly mustFinish = false;
  readonly releasesInputs = true;
  readonly details: Readonly<Record<string, string>> = { executionProvider: "cpu", engine: "native" };
  readonly #shaped: ReturnType<typeof scalarOutputs>;
  readonly #memory = new MergeMemory();
  #run: NativeRun | undefined;
  #starting: Promise<void> | undefined;
  /** Why the running batch has to end. */
  #reason: TritonError | undefined;
  #isRunning = false;
  #onIdle: (() => void) | undefined;

  constructor(
    private readonly session: SharedSession,
    private readonly data: SessionData,
    private readonly context: NativeContext,
  ) {
    this.#shaped = scalarOutputs(this.#config);
  }

  start(): Promise<void> {
    this.#starting = this.#open();
    return this.#starting;
  }

  async #open(): Promise<void> {
    try {
      const session = await this.session.acquire();
      this.#run = new NativeRun(session, this.data, this.#config);
      endRunsAtExit.add(this);
    } finally {
      await this.context.dropOpened();
    }
  }

  async execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    this.#watch(execution);
    const inputs = joinInputsIn(execution, this.#memory.of);
    execution.inputsReady();
    try {
      const outputs = await runLane.run(() => this.#runBatch(inputs, execution), undefined);
      execution.outputsReady();
      const rows = totalRows(execution.requests);
      return divideOutputs(execution, this.context.checker.check(this.#shaped(outputs), rows, [], true));
    } finally {
      this.#reason = undefined;
    }
  }

  async stop(): Promise<void> {
    await this.#starting?.catch(() => {});
    await this.context.dropOpened();
    const run = this.#run;
    if (run === undefined) return;
    this.end(this.#stopped());
    this.#run = undefined;
    if (this.#isRunning) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    endRunsAtExit.delete(this);
    run.close();
    await this.session.release();
  }

  /** Ends the running batch with an error, which its open requests get. */
  end(reason: TritonError): void {
    this.#reason ??= reason;
    if (this.#isRunning) this.#run?.end();
  }

  /** Ends the batch when all its requests are cancelled. */
  #watch(execution: Execution): void {
    let open = execution.requests.length;
    const givenUp = (): void => {
      if (--open === 0) this.end(new TritonError("CANCELLED", "all requests of the batch were cancelled"));
    };
    execution.watch({ givenUp });
    // Null requests, and those that were cancelled on the way here.
    for (const index of execution.requests.keys()) if (!execution.isOpen(index)) givenUp();
  }

  async #runBatch(inputs: Tensors, execution: Execution): Promise<Map<string, Tensor>> {
    const run = this.#run;
    if (this.#reason !== undefined || run === undefined) throw this.#reason ?? this.#stopped();
    execution.postponed?.();
    const { clock, hosting } = this.context;
    const limitMs = hosting.executionTimeoutMs;
    const limit =
      limitMs === undefined ? undefined : clock.setTimer(limitMs, () => this.end(this.#tooLong(limitMs)));
    this.#isRunning = true;
    try {
      return await run.run(inputs);
    } catch (error) {
      throw this.#reason ?? error;
    } finally {
      this.#isRunning = false;
      limit?.cancel();
      this.#onIdle?.();
    }
  }

  #stopped(): TritonError {
    return errorOf("MODEL_STOPPED", `${this.#name} was stopped`);
  }

  #tooLong(limitMs: number): TritonError {
    const text = `${this.#name} ended its batch: it ran for more than ${limitMs} ms`;
    return errorOf("TIME_LIMIT_EXCEEDED", text);
  }

  get #config(): ModelConfig {
    return this.context.info.modelConfig;
  }

  get #name(): string {
    const { instanceName, modelName } = this.context.info;
    return `instance '${instanceName}' of model '${modelName}'`;
  }
}

/** A model whose instances share one session. */
export class NativeModel {
  #session: SharedSession | undefined;
  #isOpened = false;

  /** @param data makes the settings of the session */
  constructor(private readonly data: () => SessionData) {}

  /** Opens the session to describe the model. It stays open until `dropOpened`. */
  async open(api: OrtApi): Promise<NativeSession> {
    const session = await this.#shared(api).acquire();
    this.#isOpened = true;
    return session;
  }

  /** Gives up the session that describes the model. Instances keep it open. */
  readonly dropOpened = async (): Promise<void> => {
    if (!this.#isOpened) return;
    this.#isOpened = false;
    await this.#session?.release();
  };

  executor(api: OrtApi, surroundings: NativeSurroundings): NativeExecutor {
    const session = this.#shared(api);
    return new NativeExecutor(session, this.data(), { ...surroundings, dropOpened: this.dropOpened });
  }

  #shared(api: OrtApi): SharedSession {
    this.#session ??= new SharedSession(() => openNativeSession(api, this.data()));
    return this.#session;
  }
}

/** An instance that may have a batch on another thread. */
interface RunningInstance {
  /** Ends its running batch. */
  end(reason: TritonError): void;
}

/**
 * Instances whose batches end when the process exits. Node waits for the threads of libuv's pool before it exits, so
 * without this a long batch would delay the exit.
 */
class ExitGuard {
  readonly #instances = new Set<RunningInstance>();

  add(instance: RunningInstance): void {
    if (this.#instances.size === 0) process.once("exit", this.#endAll);
    this.#instances.add(instance);
  }

  delete(instance: RunningInstance): void {
    this.#instances.delete(instance);
    if (this.#instances.size === 0) process.off("exit", this.#endAll);
  }

  readonly #endAll = (): void => {
    const reason = errorOf("MODEL_STOPPED", "the process exits");
    for (const instance of this.#instances) instance.end(reason);
  };
}

/** The guard of this thread. */
const endRunsAtExit = new ExitGuard();

/**
 * Memory in which an instance joins the inputs of its batches. A batch overwrites that of the batch before, so the
 * memory is as large as the largest batch so far, and its pages are touched once.
 */
class MergeMemory {
  readonly #buffers = new Map<string, ArrayBuffer>();

  /** The memory of an input. */
  readonly of = (name: string): Allocate => {
    return (byteSize) => {
      let buffer = this.#buffers.get(name);
      if (buffer === undefined || buffer.byteLength < byteSize) {
        buffer = new ArrayBuffer(byteSize);
        this.#buffers.set(name, buffer);
      }
      return new Uint8Array(buffer, 0, byteSize);
    };
  };
}

/** ONNX Runtime's words, in old and new versions, for an output that does not have the shape of its memory. */
const OTHER_SHAPE = /shape verification failed|output OrtValue provided for output/i;

/** Runs batches of one instance on a session, one at a time, and ends the running one. */
class NativeRun {
  readonly #scalars: ReadonlySet<string>;
  readonly #inputNames: NativeNames;
  readonly #outputs: readonly string[];
  readonly #outputNames: NativeNames;
  readonly #inputValues: BigUint64Array;
  readonly #outputValues: BigUint64Array;
  readonly #shapes: ShapePrediction;
  /** False once an output had another shape than predicted: the file then declares a wrong one. */
  #predicts = true;
  readonly #options: number;
  #ended = false;

  constructor(
    private readonly session: NativeSession,
    data: SessionData,
    config: ModelConfig,
  ) {
    const { api, inputs } = session;
    this.#scalars = scalarInputs(data, config);
    this.#inputNames = new NativeNames(
      api,
      inputs.map(({ name }) => name),
    );
    this.#outputs = outputNamesOf(config);
    this.#outputNames = new NativeNames(api, this.#outputs);
    this.#inputValues = new BigUint64Array(inputs.length + 1);
    this.#outputValues = new BigUint64Array(this.#outputs.length + 1);
    this.#shapes = new ShapePrediction(inputs);
    this.#options = api.read((to) => api.createRunOptions(to));
  }

  /** Ends the running batch before its next operator. */
  end(): void {
    const { api } = this.session;
    this.#ended = true;
    api.check(api.runOptionsSetTerminate(this.#options));
  }

  /** Releases the memory of ONNX Runtime. No batch may run. */
  close(): void {
    this.session.api.releaseRunOptions(this.#options);
  }

  /**
   * Runs a batch on a thread of libuv's pool.
   *
   * @throws TritonError INTERNAL with ONNX Runtime's words, also for a batch that was ended
   */
  async run(inputs: Tensors): Promise<Map<string, Tensor>> {
    const { api, address } = this.session;
    try {
      const held = this.#fillInputs(inputs);
      const prepared = this.#prepareOutputs(inputs);
      const { koffi } = api;
      const status = await callAsync(
        [held, prepared],
        api.run,
        address,
        this.#options,
        this.#inputNames.address,
        Number(koffi.address(this.#inputValues)),
        this.#inputNames.length,
        this.#outputNames.address,
        this.#outputNames.length,
        Number(koffi.address(this.#outputValues)),
      );
      api.check(status);
      return new Map(
        this.#outputs.map((name, i) => [
          name,
          prepared[i] ?? copyOutput(api, name, Number(this.#outputValues[i])),
        ]),
      );
    } catch (error) {
      if (!this.#predicts || !OTHER_SHAPE.test(String(error))) throw error;
      this.#predicts = false;
    } finally {
      this.#release();
    }
    return this.run(inputs);
  }

  /** Makes the values of the inputs, and returns the arrays under them. */
  #fillInputs(inputs: Tensors): readonly unknown[] {
    const { api } = this.session;
    return this.session.inputs.map(({ name }, i) => {
      const tensor = inputs.get(name);
      if (tensor === undefined) throw new Error(`input '${name}' is missing in 'feeds'.`);
      const shape = this.#scalars.has(name) ? [] : tensor.shape;
      const { value, held } = inputValue(api, tensor, toOnnxType(tensor.datatype), shape);
      this.#inputValues[i] = BigInt(value);
      return held;
    });
  }

  /** Makes the memory of the outputs whose shape is known. ONNX Runtime allocates the others. */
  #prepareOutputs(inputs: Tensors): readonly (Tensor | undefined)[] {
    if (!this.#predicts) return [];
    const { api, outputs } = this.session;
    return this.#outputs.map((wanted, i) => {
      const output = outputs.find(({ name }) => name === wanted);
      const shape = output && this.#shapes.predict(output, (input) => inputs.get(input)?.shape);
      if (output === undefined || shape === undefined) return undefined;
      const datatype = outputDataType(wanted, output.elementType);
      const count = elementCount(shape);
      if (datatype === "BYTES" || count === 0) return undefined;
      const elements = new (typedArrayFor(datatype))(count);
      this.#outputValues[i] = BigInt(valueOver(api, elements, output.elementType, shape));
      return Tensor.fromElements(datatype, shape, elements);
    });
  }

  #release(): void {
    const { api } = this.session;
    for (const values of [this.#inputValues, this.#outputValues]) {
      for (let i = 0; i < values.length; i++) {
        if (values[i] !== 0n) api.releaseValue(Number(values[i]));
        values[i] = 0n;
      }
    }
    if (this.#ended) api.check(api.runOptionsUnsetTerminate(this.#options));
    this.#ended = false;
  }
}

/** An input as ONNX Runtime takes it. */
interface InputValue {
  /** Address of the `OrtValue`. The caller releases it after the run. */
  readonly value: number;
  /** The array that holds the data; it must stay alive as long as the value. */
  readonly held: Elements;
}

const STRING = 8;

/** Memory that stands for that of an empty array, which has no address. */
const NOTHING = new Uint8Array(8);

/** Dimensions of the value that is being made. ONNX Runtime copies them. */
let dims = new BigInt64Array(16);

/**
 * Makes a value of ONNX Runtime over the memory of a tensor. The elements of `BYTES` are copied into strings.
 *
 * @param elementType ONNX's number of the data type
 * @param shape dimensions inside the model
 * @throws TritonError INTERNAL if ONNX Runtime refuses the tensor
 */
function inputValue(
  api: OrtApi,
  { elements: held }: Tensor,
  elementType: number,
  shape: readonly number[],
): InputValue {
  if (Array.isArray(held)) return { value: stringValue(api, held, shape), held };
  return { value: valueOver(api, held, elementType, shape), held };
}

/** Makes a value over an array. */
function valueOver(
  api: OrtApi,
  array: ArrayBufferView,
  elementType: number,
  shape: readonly number[],
): number {
  const { koffi, cpuMemory } = api;
  const data = Number(koffi.address(array.byteLength === 0 ? NOTHING : array));
  const at = dimensions(api, shape);
  return api.read((to) =>
    api.createTensorWithDataAsOrtValue(cpuMemory, data, array.byteLength, at, shape.length, elementType, to),
  );
}

/** Writes the dimensions to `dims`, and returns its address. The memory stays until the next call. */
function dimensions({ koffi }: OrtApi, shape: readonly number[]): number {
  if (shape.length > dims.length) dims = new BigInt64Array(shape.length);
  for (let i = 0; i < shape.length; i++) dims[i] = BigInt(shape[i]!);
  return Number(koffi.address(dims));
}

/** A tensor of strings. A string may contain any bytes. */
function stringValue(api: OrtApi, elements: readonly Uint8Array[], shape: readonly number[]): number {
  const at = dimensions(api, shape);
  const value = api.read((to) => api.createTensorAsOrtValue(api.allocator, at, shape.length, STRING, to));
  try {
    for (const [i, element] of elements.entries()) {
      if (element.byteLength === 0) continue;
      const buffer = api.read((to) =>
        api.getResizedStringTensorElementBuffer(value, i, element.byteLength, to),
      );
      api.copy(buffer, Number(api.koffi.address(element)), element.byteLength);
    }
    return value;
  } catch (error) {
    api.releaseValue(value);
    throw error;
  }
}

/**
 * Copies an output that ONNX Runtime has allocated, because its shape was not known before the run.
 *
 * @param value address of the output, which the caller releases
 * @throws TritonError UNSUPPORTED for types that the protocol does not have
 */
function copyOutput(api: OrtApi, name: string, value: number): Tensor {
  const info = api.read((to) => api.getTensorTypeAndShape(value, to));
  try {
    const { elementType, dims } = typeAndShape(api, info);
    const datatype = outputDataType(name, elementType);
    if (datatype === "BYTES")
      return Tensor.fromElements("BYTES", dims, strings(api, value, elementCount(dims)));
    const elements = new (typedArrayFor(datatype))(elementCount(dims));
    if (elements.byteLength > 0) {
      const from = api.read((to) => api.getTensorMutableData(value, to));
      api.copy(Number(api.koffi.address(elements)), from, elements.byteLength);
    }
    return Tensor.fromElements(datatype, dims, elements);
  } finally {
    api.releaseTensorTypeAndShapeInfo(info);
  }
}

/** @throws TritonError UNSUPPORTED for types that the protocol does not have */
function outputDataType(name: string, elementType: number): DataType {
  const datatype = fromOnnxType(elementType);
  if (datatype !== undefined) return datatype;
  const text = `output '${name}' has ONNX type ${elementType}, which the protocol cannot carry`;
  throw errorOf("MODEL_NOT_SUPPORTED", text);
}

function strings(api: OrtApi, value: number, count: number): Uint8Array[] {
  if (count === 0) return [];
  const length = api.read((to) => api.getStringTensorDataLength(value, to));
  // At least a byte, because an empty array has no address.
  const bytes = new Uint8Array(length + 1);
  const offsets = new BigUint64Array(count);
  const [to, at] = [bytes, offsets].map((array) => Number(api.koffi.address(array))) as [number, number];
  api.check(api.getStringTensorContent(value, to, length, at, count));
  return Array.from(offsets, (start, i) =>
    bytes.subarray(Number(start), i + 1 < count ? Number(offsets[i + 1]) : length),
  );
}

/** The list of names that a run gets, as C has it: addresses of NUL-terminated strings. */
class NativeNames {
  /** Addresses of the names. */
  readonly #list: BigUint64Array;
  readonly #texts: readonly Uint8Array[];
  /** Address of the list. */
  readonly address: number;

  constructor({ koffi }: OrtApi, names: readonly string[]) {
    this.#texts = names.map((name) => Buffer.from(`${name}\0`));
    this.#list = BigUint64Array.from([...this.#texts.map((text) => koffi.address(text)), 0n]);
    this.address = Number(koffi.address(this.#list));
  }

  /** Number of names. */
  get length(): number {
    return this.#texts.length;
  }
}

/**
 * Predicts the shapes of outputs from those of inputs: of fixed dimensions, and of dimensions whose name an input has
 * too. ONNX Runtime then writes such outputs to memory of ours, which need not be copied.
 */
export class ShapePrediction {
  /** Input and axis of each name. */
  readonly #sources = new Map<string, { readonly input: string; readonly axis: number }>();

  constructor(inputs: readonly NativeTensor[]) {
    for (const { name: input, dimNames } of inputs) {
      for (const [axis, name] of dimNames.entries()) {
        if (name !== "" && !this.#sources.has(name)) this.#sources.set(name, { input, axis });
      }
    }
  }

  /**
   * The shape of an output, undefined when it cannot be predicted.
   *
   * @param shapeOf the shape of an input in this run
   */
  predict(
    { dims, dimNames }: Pick<NativeTensor, "dims" | "dimNames">,
    shapeOf: (input: string) => readonly number[] | undefined,
  ): readonly number[] | undefined {
    // No dimensions mean a scalar, or an unknown rank.
    if (dims.length === 0) return undefined;
    const shape: number[] = [];
    for (const [axis, size] of dims.entries()) {
      const source = size >= 0 ? undefined : this.#sources.get(dimNames[axis]!);
      const known = size >= 0 ? size : source && shapeOf(source.input)?.[source.axis];
      if (known === undefined) return undefined;
      shape.push(known);
    }
    return shape;
  }
}
