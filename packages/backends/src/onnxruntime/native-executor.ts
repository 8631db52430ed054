import {
  divideOutputs,
  type Execution,
  type ExecutionResult,
  type Executor,
  type ExecutorContext,
} from "@tritonjs/core/backend";
import { joinInputsIn, type Tensors, totalRows } from "@tritonjs/core/internal";
import {
  type DataType,
  elementCount,
  errorFor,
  fromOnnxType,
  type ModelConfig,
  Tensor,
  TritonError,
  toOnnxType,
  typedArrayFor,
} from "@tritonjs/protocol";
import {
  callAsync,
  type NativeModel,
  type NativeSession,
  type NativeTensor,
  runLane,
  typeAndShape,
} from "./native-session.js";
import type { SessionData } from "./onnx-options.js";
import type { OrtApi } from "./ort-c-api.js";
import { outputNamesOf } from "./ort-session.js";
import { scalarInputs, scalarOutputs } from "./ort-tensors.js";

/**
 * Runs batches through ONNX Runtime's C interface, on threads of libuv's pool. All instances of a model share one
 * session. A batch ends early when all its requests are cancelled, and when it exceeds the execution time limit.
 */
export class NativeExecutor implements Executor {
  /** A running batch can be ended. */
  readonly mustFinish = false;
  readonly releasesInputs = true;
  readonly details: Readonly<Record<string, string>> = { executionProvider: "cpu", engine: "native" };
  readonly #shaped: ReturnType<typeof scalarOutputs>;
  /**
   * Memory in which the inputs of batches are joined, by input. A batch overwrites that of the batch before, so the
   * memory is as large as the largest batch so far, and its pages are touched once.
   */
  readonly #memory = new Map<string, ArrayBuffer>();
  #run: NativeRun | undefined;
  #starting: Promise<void> | undefined;
  #reason: TritonError | undefined;
  #isRunning = false;
  #onIdle: (() => void) | undefined;

  constructor(
    private readonly model: NativeModel,
    private readonly api: OrtApi,
    private readonly context: ExecutorContext,
  ) {
    this.#shaped = scalarOutputs(this.#config);
  }

  start(): Promise<void> {
    this.#starting = this.#open();
    return this.#starting;
  }

  async #open(): Promise<void> {
    try {
      const session = await this.model.acquire(this.api);
      this.#run = new NativeRun(session, this.model.data(), this.#config);
      addToExit(this);
    } finally {
      await this.model.dropOpened();
    }
  }

  async execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    this.#watch(execution);
    const inputs = joinInputsIn(execution, (name) => (byteSize) => this.#memoryOf(name, byteSize));
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
    await this.model.dropOpened();
    const run = this.#run;
    if (run === undefined) return;
    this.end(this.#stopped());
    this.#run = undefined;
    if (this.#isRunning) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    removeFromExit(this);
    run.close();
    await this.model.release();
  }

  #memoryOf(name: string, byteSize: number): Uint8Array<ArrayBuffer> {
    let buffer = this.#memory.get(name);
    if (buffer === undefined || buffer.byteLength < byteSize) {
      buffer = new ArrayBuffer(byteSize);
      this.#memory.set(name, buffer);
    }
    return new Uint8Array(buffer, 0, byteSize);
  }

  /** Ends the running batch with an error, which its open requests get. */
  end(reason: TritonError): void {
    this.#reason ??= reason;
    if (this.#isRunning) this.#run?.end();
  }

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
    const end = () => {
      const text = `${this.#name} ended its batch: it ran for more than ${limitMs} ms`;
      this.end(errorFor("TIME_LIMIT_EXCEEDED", text));
    };
    const limit = limitMs === undefined ? undefined : clock.setTimer(limitMs, end);
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
    return errorFor("MODEL_STOPPED", `${this.#name} was stopped`);
  }

  get #config(): ModelConfig {
    return this.context.info.modelConfig;
  }

  get #name(): string {
    const { instanceName, modelName } = this.context.info;
    return `instance '${instanceName}' of model '${modelName}'`;
  }
}

/**
 * Instances of this thread whose batches end when the process exits. Node waits for the threads of libuv's pool before
 * it exits, so without this a long batch would delay the exit.
 */
const running = new Set<NativeExecutor>();

function addToExit(instance: NativeExecutor): void {
  if (running.size === 0) process.once("exit", endAll);
  running.add(instance);
}

function removeFromExit(instance: NativeExecutor): void {
  running.delete(instance);
  if (running.size === 0) process.off("exit", endAll);
}

function endAll(): void {
  for (const instance of running) instance.end(errorFor("MODEL_STOPPED", "the process exits"));
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
    const names = inputs.map(({ name }) => name);
    this.#inputNames = new NativeNames(api, names);
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
      const outputOf = (name: string, i: number) =>
        prepared[i] ?? copyOutput(api, name, Number(this.#outputValues[i]));
      return new Map(this.#outputs.map((name, i) => [name, outputOf(name, i)]));
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
      const { elements } = tensor;
      const value = Array.isArray(elements)
        ? stringValue(api, elements, shape)
        : valueOver(api, elements, toOnnxType(tensor.datatype), shape);
      this.#inputValues[i] = BigInt(value);
      return elements;
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

const STRING = 8;

/** Memory that stands for that of an empty array, which has no address. */
const NOTHING = new Uint8Array(8);

/** Dimensions of the value that is being made. ONNX Runtime copies them. */
let dims = new BigInt64Array(16);

/**
 * Makes a value of ONNX Runtime over the memory of an array, which must stay alive as long as the value.
 *
 * @param elementType ONNX's number of the data type
 * @param shape dimensions inside the model
 * @returns the address of the `OrtValue`, which the caller releases after the run
 * @throws TritonError INTERNAL if ONNX Runtime refuses the tensor
 */
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
  throw errorFor("MODEL_NOT_SUPPORTED", text);
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
  readonly #list: BigUint64Array;
  readonly #texts: readonly Uint8Array[];
  readonly address: number;

  constructor({ koffi }: OrtApi, names: readonly string[]) {
    this.#texts = names.map((name) => Buffer.from(`${name}\0`));
    this.#list = BigUint64Array.from([...this.#texts.map((text) => koffi.address(text)), 0n]);
    this.address = Number(koffi.address(this.#list));
  }

  get length(): number {
    return this.#texts.length;
  }
}

/**
 * Predicts the shapes of outputs from those of inputs: of fixed dimensions, and of dimensions whose name an input has
 * too. ONNX Runtime then writes such outputs to memory of ours, which need not be copied.
 */
export class ShapePrediction {
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
