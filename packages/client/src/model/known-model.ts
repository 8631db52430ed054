import { type ModelSignature, TritonError, unlessAborted } from "@tritonjs/protocol";
import { waitUntil } from "../call/readiness-poll.js";
import { type CommonCallOptions, DEFAULT_TIMEOUT_MS, type VersionOption } from "../options/client-options.js";
import {
  type CommonModelOptions,
  DEFAULT_INFERENCE_TIMEOUT_MS,
  DEFAULT_INIT_TIMEOUT_MS,
  type WaitCallOptions,
} from "../options/model-options.js";

/** The part of a server's client that a model's client uses. */
export interface ServerOfModel {
  isServerReady(call: CommonCallOptions): Promise<boolean>;
  isModelReady(modelName: string, call: CommonCallOptions & VersionOption): Promise<boolean>;
  getModelConfig(modelName: string, call: CommonCallOptions & VersionOption): Promise<object>;
  loadModel(modelName: string, options: CommonCallOptions): Promise<void>;
  unloadModel(modelName: string, options: CommonCallOptions): Promise<void>;
  close(): void;
}

/** The address of a server, or a list of addresses. */
export type AddressOrList = string | readonly string[];

/** The configuration that such a client returns. */
export type ConfigOf<S extends ServerOfModel> = Awaited<ReturnType<S["getModelConfig"]>>;

/** The load options of such a client. */
export type LoadOptionsOf<S extends ServerOfModel> = NonNullable<Parameters<S["loadModel"]>[1]>;

interface Model<S extends ServerOfModel> {
  readonly config: ConfigOf<S>;
  readonly signature: ModelSignature;
}

/** One model of a server: waits for it, and reads its configuration once. The base class of the clients of a model. */
export abstract class KnownModel<S extends ServerOfModel> {
  readonly modelName: string;
  protected readonly server: S;
  protected readonly options: CommonModelOptions;
  readonly #ownsServer: boolean;
  readonly #closed = new AbortController();
  #model: Promise<Model<S>> | undefined;

  /** @param server addresses of servers to open a client for, or a client, which `close` leaves open */
  constructor(
    server: AddressOrList | S,
    open: (url: AddressOrList) => S,
    modelName: string,
    options: CommonModelOptions,
  ) {
    this.modelName = modelName;
    this.#ownsServer = isAddress(server);
    this.server = isAddress(server) ? open(server) : server;
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
   * configuration once.
   */
  async modelConfig({ signal }: { signal?: AbortSignal } = {}): Promise<ConfigOf<S>> {
    return (await unlessAborted(this.#knownModel(), signal)).config;
  }

  /** True when the model has a batch axis. */
  async isBatchingSupported({ signal }: { signal?: AbortSignal } = {}): Promise<boolean> {
    return (await unlessAborted(this.#knownModel(), signal)).signature.maxBatchSize > 0;
  }

  /**
   * Rejects further and waiting calls, and resolves when the inferences in flight have ended. Streams are cancelled.
   */
  async close(): Promise<void> {
    this.#closed.abort(new TritonError("UNAVAILABLE", "the client is closed", { reason: "CLIENT_CLOSED" }));
    await this.finished();
    if (this.#ownsServer) this.server.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** @throws TritonError INTERNAL for an invalid configuration. */
  protected abstract signatureOf(config: ConfigOf<S>): ModelSignature;

  /** Resolves when the calls for which `close` waits have ended. */
  protected finished(): Promise<void> {
    return Promise.resolve();
  }

  /** Aborts when the client is closed. */
  protected get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** The signature of the model, and the time limit of an inference. */
  protected async prepared(
    signal: AbortSignal | undefined,
  ): Promise<{ signature: ModelSignature; timeoutMs: number }> {
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
    const config = (await this.server.getModelConfig(this.modelName, call)) as ConfigOf<S>;
    return { config, signature: this.signatureOf(config) };
  }

  #wait(
    what: string,
    isReady: (call: CommonCallOptions) => Promise<boolean>,
    { timeoutMs = this.#initTimeoutMs, signal }: WaitCallOptions,
  ): Promise<void> {
    const callTimeoutMs = Math.min(DEFAULT_TIMEOUT_MS, timeoutMs);
    return waitUntil((ended) => isReady({ signal: ended, timeoutMs: callTimeoutMs }), {
      what,
      timeoutMs,
      signals: [signal, this.#closed.signal],
    });
  }
}

function isAddress(server: AddressOrList | object): server is AddressOrList {
  return typeof server === "string" || Array.isArray(server);
}
