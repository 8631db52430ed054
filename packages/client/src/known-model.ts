import {
  assertOptions,
  type BatchAxis,
  type CallByPosition,
  ConcurrencyGate,
  fromConfigDataType,
  type InputValuesOf,
  isDataType,
  type ModelMetadata,
  type ModelSignature,
  modelInputs,
  type OptionTypes,
  type ReadCall,
  type ResultOf,
  readCall,
  type Tensor,
  type TensorSpec,
  TritonError,
  toConfigDataType,
  unlessAborted,
  valuesByName,
} from "@tritonjs/protocol";
import { invalidAnswer } from "./caller.js";
import { waitUntil } from "./deadline.js";
import { type InferResult, resultArrays } from "./infer-result.js";
import {
  CALL_OPTION_TYPES,
  type CommonCallOptions,
  type CommonModelOptions,
  DEFAULT_INFERENCE_TIMEOUT_MS,
  DEFAULT_INIT_TIMEOUT_MS,
  DEFAULT_MAX_QUEUE_SIZE,
  DEFAULT_TIMEOUT_MS,
  MODEL_CLIENT_OPTION_TYPES,
  type VersionOption,
  type WaitCallOptions,
} from "./options.js";
import type { ClassifyOptions, ClassScore } from "./served-models.js";

/** The part of a server's client that a model's client uses. */
export interface ServerOfModel {
  isServerReady(call: CommonCallOptions): Promise<boolean>;
  isModelReady(modelName: string, call: CommonCallOptions & VersionOption): Promise<boolean>;
  getModelConfig(modelName: string, call: CommonCallOptions & VersionOption): Promise<object>;
  getModelMetadata(modelName: string, call: CommonCallOptions & VersionOption): Promise<ModelMetadata>;
  loadModel(modelName: string, options: CommonCallOptions): Promise<void>;
  unloadModel(modelName: string, options: CommonCallOptions): Promise<void>;
  infer(
    modelName: string,
    call: CommonCallOptions &
      VersionOption & {
        readonly inputs: Readonly<Record<string, Tensor>>;
        readonly outputs?: readonly { readonly name: string; readonly classes: number }[];
      },
  ): Promise<InferResult>;
  close(): void;
}

/** The address of a server, or a list of addresses. */
type AddressOrList = string | readonly string[];

/** The configuration that such a client returns. */
type ConfigOf<S extends ServerOfModel> = Awaited<ReturnType<S["getModelConfig"]>>;

/** The load options of such a client. */
type LoadOptionsOf<S extends ServerOfModel> = NonNullable<Parameters<S["loadModel"]>[1]>;

interface Model<S extends ServerOfModel> {
  readonly config: ConfigOf<S>;
  readonly signature: ModelSignature;
}

/** Carrier of the calls of a client of one model: opens the client of a server, and knows its options. */
export interface ModelCarrier<S> {
  open(url: AddressOrList, options: object): S;
  /** Options of the client of the server. */
  readonly serverTypes: OptionTypes;
  /** Options of an inference. */
  readonly inferTypes: OptionTypes;
  /** The alternative for decoupled models, for the text of an error. */
  readonly forDecoupled: string;
}

/** One model of a server: waits for it, and reads its configuration once. The base class of the clients of a model. */
export class KnownModel<S extends ServerOfModel> {
  readonly modelName: string;
  protected readonly server: S;
  protected readonly options: CommonModelOptions;
  readonly #inferTypes: OptionTypes;
  readonly #where: string;
  readonly #ownsServer: boolean;
  readonly #closed = new AbortController();
  #model: Promise<Model<S>> | undefined;

  /**
   * @param server addresses of servers to open a client for, or a client, which `close` leaves open
   * @param className the class of the client, for errors about its options
   * @throws TritonError INVALID_ARG for an unknown option, and for one of another type.
   */
  constructor(
    carrier: ModelCarrier<S>,
    server: AddressOrList | S,
    modelName: string,
    options: CommonModelOptions,
    className: string,
  ) {
    // Clients of one model have limits of their own.
    const { timeoutMs: _, ...serverTypes } = carrier.serverTypes;
    const known = { ...serverTypes, ...MODEL_CLIENT_OPTION_TYPES };
    this.#where = `new ${className}()`;
    this.#inferTypes = carrier.inferTypes;
    assertOptions(this.#where, options, known, { "inferSample()": this.#inferTypes });
    this.modelName = modelName;
    this.#ownsServer = isAddress(server);
    const ofServer = Object.entries(options).filter(([name]) => Object.hasOwn(serverTypes, name));
    this.server = isAddress(server) ? carrier.open(server, Object.fromEntries(ofServer)) : server;
    this.options = options;
    // The first call reports the error.
    if (options.lazyInit === false) this.#knownModel().catch(() => {});
  }

  /** Resolves when the server is ready. */
  waitForServer(options: WaitCallOptions = {}): Promise<void> {
    return this.#wait("the server", (call) => this.server.isServerReady(call), options);
  }

  /** Resolves when the model is ready, even if others are not. */
  waitForModel(options: WaitCallOptions = {}): Promise<void> {
    const { modelVersion } = this.options;
    const isReady = (call: CommonCallOptions) =>
      this.server.isModelReady(this.modelName, { ...call, modelVersion });
    return this.#wait(`model '${this.modelName}'`, isReady, options);
  }

  /** Loads or reloads the model on a server with a model repository. */
  async loadModel(options?: LoadOptionsOf<S>): Promise<void> {
    await this.server.loadModel(this.modelName, { timeoutMs: this.#initTimeoutMs, ...options });
    this.#model = undefined;
  }

  /** Unloads the model. */
  async unloadModel(options: WaitCallOptions = {}): Promise<void> {
    await this.server.unloadModel(this.modelName, { timeoutMs: this.#initTimeoutMs, ...options });
    this.#model = undefined;
  }

  /**
   * Returns the model's configuration in the form of the server's client. Waits for the model, and requests the
   * configuration once. For a server without configurations it has the tensors of the metadata, without a batch axis.
   */
  async modelConfig({ signal }: { signal?: AbortSignal } = {}): Promise<ConfigOf<S>> {
    return (await unlessAborted(this.#knownModel(), signal)).config;
  }

  /** True when the model has a batch axis. */
  async isBatchingSupported({ signal }: { signal?: AbortSignal } = {}): Promise<boolean> {
    return (await unlessAborted(this.#knownModel(), signal)).signature.maxBatchSize > 0;
  }

  /** Rejects further and waiting calls, cancels streams, and resolves when the inferences in flight have ended. */
  async close(): Promise<void> {
    this.#closed.abort(new TritonError("UNAVAILABLE", "the client is closed", { reason: "CLIENT_CLOSED" }));
    await this.finished();
    if (this.#ownsServer) this.server.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Resolves when the calls for which `close` waits have ended. */
  protected finished(): Promise<void> {
    return Promise.resolve();
  }

  /** Aborts when the client is closed. */
  protected get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** @throws TritonError INVALID_ARG for an unknown option of an inference, and for one of another type. */
  protected assertInferOptions(options: object | undefined): void {
    if (options === undefined) return;
    assertOptions(`inference with '${this.modelName}'`, options, this.#inferTypes, {
      [this.#where]: MODEL_CLIENT_OPTION_TYPES,
    });
  }

  /** The signature of the model, and the time limit of an inference. */
  protected async prepared(
    signal: AbortSignal | undefined,
  ): Promise<{ signature: ModelSignature; timeoutMs: number }> {
    this.assertInferOptions({ signal });
    if (this.#closed.signal.aborted) throw this.#closed.signal.reason;
    const { signature } = await unlessAborted(this.#knownModel(), signal);
    return { signature, timeoutMs: this.options.inferenceTimeoutMs ?? DEFAULT_INFERENCE_TIMEOUT_MS };
  }

  get #initTimeoutMs(): number {
    return this.options.initTimeoutMs ?? DEFAULT_INIT_TIMEOUT_MS;
  }

  /** All calls share one request for the model's configuration. After a failure, the next call requests it again. */
  #knownModel(): Promise<Model<S>> {
    this.#model ??= this.#lookUp().catch((thrown: unknown) => {
      this.#model = undefined;
      throw thrown;
    });
    return this.#model;
  }

  async #lookUp(): Promise<Model<S>> {
    await this.waitForModel();
    const { modelVersion } = this.options;
    const call = { modelVersion, signal: this.#closed.signal, timeoutMs: this.#initTimeoutMs };
    const { modelName } = this;
    let config: ConfigOf<S>;
    try {
      config = (await this.server.getModelConfig(modelName, call)) as ConfigOf<S>;
    } catch (error) {
      // A v2 server need not have Triton's extension for configurations.
      const { code } = TritonError.from(error);
      if (code !== "NOT_FOUND" && code !== "UNSUPPORTED") throw error;
      const metadata = await this.server.getModelMetadata(modelName, call).catch(() => {
        throw error;
      });
      config = configOfMetadata(metadata) as unknown as ConfigOf<S>;
    }
    return { config, signature: modelSignature(modelName, config) };
  }

  async #wait(
    what: string,
    isReady: (call: CommonCallOptions) => Promise<boolean>,
    options: WaitCallOptions,
  ): Promise<void> {
    assertOptions(`wait for ${what}`, options, CALL_OPTION_TYPES);
    const { timeoutMs = this.#initTimeoutMs, signal } = options;
    const callTimeoutMs = Math.min(DEFAULT_TIMEOUT_MS, timeoutMs);
    return waitUntil((ended) => isReady({ signal: ended, timeoutMs: callTimeoutMs }), {
      what,
      timeoutMs,
      signals: [signal, this.#closed.signal],
    });
  }
}

/** True for addresses of servers, false for a client. */
export function isAddress(server: AddressOrList | object): server is AddressOrList {
  return typeof server === "string" || Array.isArray(server);
}

/**
 * The client of a model with one response per request, over any carrier. `ModelClient` of each protocol hands it the
 * carrier, and adds nothing.
 */
export class AnsweringModel<
  I extends readonly TensorSpec[],
  O extends readonly TensorSpec[],
  S extends ServerOfModel,
  InferOptions extends Pick<CommonCallOptions, "signal">,
> extends KnownModel<S> {
  readonly #gate: ConcurrencyGate;
  readonly #forDecoupled: string;

  constructor(
    carrier: ModelCarrier<S>,
    server: AddressOrList | S,
    modelName: string,
    options: CommonModelOptions,
  ) {
    super(carrier, server, modelName, options, "ModelClient");
    this.#forDecoupled = carrier.forDecoupled;
    const { maxConcurrency = Number.POSITIVE_INFINITY, maxQueueSize = DEFAULT_MAX_QUEUE_SIZE } = options;
    this.#gate = new ConcurrencyGate(maxConcurrency, maxQueueSize);
  }

  /** Infers one sample with tensors in the order of the model's inputs: `inferSample(a, b)`, `inferSample(a, b, options)`. */
  inferSample(...call: CallByPosition<I, InferOptions>): Promise<ResultOf<O>>;
  /**
   * Infers one sample. A model with a batch axis gets one row, and the results come without the axis. Inputs are read
   * when the call leaves the client's queue, so do not change their arrays before then.
   *
   * @throws TritonError INVALID_ARG for inputs that do not fit the model; UNSUPPORTED for a decoupled model;
   * UNAVAILABLE when the model is not ready in time, when too many calls wait, and after `close`; CANCELLED when
   * `signal` aborts; and errors that the server answers.
   */
  inferSample(inputs: InputValuesOf<I>, options?: InferOptions): Promise<ResultOf<O>>;
  inferSample(...given: readonly unknown[]): Promise<ResultOf<O>> {
    return this.#infer(given, "added");
  }

  inferBatch(...call: CallByPosition<I, InferOptions>): Promise<ResultOf<O>>;
  /** Infers a batch of rows. Throws as {@link inferSample}, and INVALID_ARG for a model without a batch axis. */
  inferBatch(inputs: InputValuesOf<I>, options?: InferOptions): Promise<ResultOf<O>>;
  inferBatch(...given: readonly unknown[]): Promise<ResultOf<O>> {
    return this.#infer(given, "given");
  }

  /**
   * Infers one sample, and returns the best classes of an output by the values that it has for them.
   *
   * @throws TritonError as {@link inferSample}, and INTERNAL for an answer that is not a classification.
   * @example
   * ```ts
   * const [best] = await iris.classify("probabilities", { measurements: [5.1, 3.5, 1.4, 0.2] });
   * best; // { value: 0.97, index: 0, label: "setosa" }
   * ```
   */
  async classify(
    output: O[number]["name"],
    inputs: InputValuesOf<I>,
    { classes = 1, ...options }: InferOptions & ClassifyOptions = {} as InferOptions,
  ): Promise<ClassScore[]> {
    const given = [inputs, options];
    const { result } = await this.#call(given, "added", [{ name: output, classes }]);
    return result.strings(output).map((text) => classOf(text, output, this.modelName));
  }

  protected override finished(): Promise<void> {
    return this.#gate.close();
  }

  async #infer(given: readonly unknown[], axis: BatchAxis): Promise<ResultOf<O>> {
    const { result, signature } = await this.#call(given, axis);
    return resultArrays(result, axis === "added" && signature.maxBatchSize > 0) as ResultOf<O>;
  }

  async #call(
    given: readonly unknown[],
    axis: BatchAxis,
    outputs?: readonly { readonly name: string; readonly classes: number }[],
  ): Promise<{ readonly result: InferResult; readonly signature: ModelSignature }> {
    const read = readCall<InferOptions>(this.modelName, given);
    const { options } = read;
    const { signature, timeoutMs } = await this.prepared(options?.signal);
    if (signature.decoupled) {
      throw new TritonError(
        "UNSUPPORTED",
        `model '${this.modelName}' is decoupled, so it has no single response: use ${this.#forDecoupled}`,
        { reason: "DECOUPLED_MODEL" },
      );
    }
    const tensors = callInputs(signature, read, axis);
    this.assertInferOptions(options);
    const { modelVersion } = this.options;
    const call = { timeoutMs, ...options, modelVersion, inputs: tensors, ...(outputs && { outputs }) };
    const result = await this.#gate.run(() => this.server.infer(this.modelName, call), options?.signal);
    return { result, signature };
  }
}

/** Reads a class of Triton's classification extension: `value:index`, or `value:index:label`. */
function classOf(text: string, output: string, modelName: string): ClassScore {
  const [, value, index, label] = /^([^:]*):(\d+)(?::(.*))?$/s.exec(text) ?? [];
  if (index === undefined) {
    throw invalidAnswer(
      `output '${output}' of model '${modelName}': expected a class as value:index:label, got '${text}'`,
    );
  }
  return { value: floatOf(value!), index: Number(index), label: label === "" ? undefined : label };
}

function floatOf(text: string): number {
  const [, sign, word] = /^(-?)(inf|nan)/i.exec(text) ?? [];
  if (word === undefined) return Number(text);
  return word.toLowerCase() === "nan" ? Number.NaN : sign === "-" ? -Infinity : Infinity;
}

/**
 * The tensors of a call, checked against the model before anything is sent.
 *
 * @throws TritonError INVALID_ARG that names the faulty input.
 */
export function callInputs(
  signature: ModelSignature,
  call: ReadCall<unknown>,
  axis: BatchAxis,
): Record<string, Tensor> {
  const values = valuesByName(signature.modelName, [...signature.inputs.values()], call);
  return modelInputs(signature, values, axis);
}

/** The parts of a configuration that a signature needs: Triton's names over HTTP, the same in camelCase over gRPC. */
interface ModelConfigParts {
  readonly max_batch_size?: number;
  readonly maxBatchSize?: number;
  readonly model_transaction_policy?: { readonly decoupled?: boolean };
  readonly modelTransactionPolicy?: { readonly decoupled?: boolean };
  readonly input?: readonly {
    readonly name: string;
    readonly data_type?: string;
    readonly dataType?: string;
    readonly dims: readonly (number | string)[];
    readonly optional?: boolean;
  }[];
  /** False for a configuration that was made of metadata. */
  readonly tellsPolicy?: boolean;
}

/** The tensors of a model's metadata as a configuration. Their shapes count as they are, without a batch axis. */
function configOfMetadata({
  inputs,
  outputs,
}: ModelMetadata): ModelConfigParts & { readonly output: object } {
  const tensors = (list: ModelMetadata["inputs"]) =>
    list.map(({ name, datatype, shape }) => ({
      name,
      data_type: isDataType(datatype) ? toConfigDataType(datatype) : String(datatype),
      dims: shape.map(Number),
    }));
  return { input: tensors(inputs), output: tensors(outputs), tellsPolicy: false };
}

/** Reads the signature of a model from its configuration. */
function modelSignature(modelName: string, config: ModelConfigParts): ModelSignature {
  if (!Array.isArray(config?.input)) {
    const text = `cannot read the server's configuration of model '${modelName}': it has no inputs`;
    throw invalidAnswer(text);
  }
  const policy = config.model_transaction_policy ?? config.modelTransactionPolicy;
  const inputs = (config.input as NonNullable<ModelConfigParts["input"]>).map((input) => {
    const dataType = (input.data_type ?? input.dataType)!;
    const datatype = fromConfigDataType(dataType);
    if (datatype === undefined) {
      throw invalidAnswer(
        `input '${input.name}' of model '${modelName}': expected a known data type, got '${dataType}'`,
      );
    }
    const { name, dims, optional } = input;
    return { name, datatype, dims: dims.map(Number), optional: optional === true };
  });
  return {
    modelName,
    maxBatchSize: Number(config.max_batch_size ?? config.maxBatchSize ?? 0),
    decoupled: config.tellsPolicy === false ? undefined : policy?.decoupled === true,
    inputs: new Map(inputs.map((input) => [input.name, input])),
  };
}
