import { setMaxListeners } from "node:events";
import type { LoadModelOptions } from "../calls/repository-calls.js";
import { DEFAULT_TIMEOUT_MS } from "../client-options.js";
import { type ModelConfig, type ModelSignature, TritonError, unlessAborted } from "../core.js";
import { InferenceServerClient } from "../inference-server-client.js";
import {
  DEFAULT_INFERENCE_TIMEOUT_MS,
  DEFAULT_INIT_TIMEOUT_MS,
  type ModelClientOptions,
  type WaitCallOptions,
} from "./model-client-options.js";
import { modelSignature } from "./model-signature.js";
import { waitUntil } from "./wait-until.js";

interface Model {
  readonly config: ModelConfig;
  readonly signature: ModelSignature;
}

/** One model of a server: waits for it, and reads its configuration once. The ground of the clients of a model. */
export abstract class KnownModel {
  readonly modelName: string;
  protected readonly server: InferenceServerClient;
  protected readonly options: ModelClientOptions;
  readonly #ownsServer: boolean;
  readonly #closed = new AbortController();
  #model: Promise<Model> | undefined;

  /**
   * @param server where the server is, or a client of it; that one is left open by `close`
   * @throws TritonError INVALID_ARG for what is no address.
   */
  constructor(server: string | InferenceServerClient, modelName: string, options: ModelClientOptions = {}) {
    // Any number of calls at a time end with the client.
    setMaxListeners(0, this.#closed.signal);
    this.modelName = modelName;
    this.#ownsServer = typeof server === "string";
    this.server = typeof server === "string" ? new InferenceServerClient(server, options) : server;
    this.options = options;
    // Whoever calls first is told what went wrong.
    if (options.lazyInit === false) this.#knownModel().catch(() => {});
  }

  /** Resolves when the server is ready. */
  waitForServer(options: WaitCallOptions = {}): Promise<void> {
    return this.#wait("the server", (call) => this.server.isServerReady(call), options);
  }

  /** Resolves when the model is ready, whether or not all others are. */
  waitForModel(options: WaitCallOptions = {}): Promise<void> {
    const { modelVersion } = this.options;
    const isReady = (call: WaitCallOptions) =>
      this.server.isModelReady(this.modelName, { ...call, modelVersion });
    return this.#wait(`model '${this.modelName}'`, isReady, options);
  }

  /** Loads or reloads the model on a server with a model repository. */
  async loadModel(options: LoadModelOptions = {}): Promise<void> {
    await this.server.loadModel(this.modelName, { timeoutMs: this.#initTimeoutMs, ...options });
    this.#model = undefined;
  }

  /** Unloads the model. */
  async unloadModel(options: WaitCallOptions = {}): Promise<void> {
    await this.server.unloadModel(this.modelName, { timeoutMs: this.#initTimeoutMs, ...options });
    this.#model = undefined;
  }

  /** The model's configuration. Asked for once; waits for the model. */
  async modelConfig({ signal }: { signal?: AbortSignal } = {}): Promise<ModelConfig> {
    return (await unlessAborted(this.#knownModel(), signal)).config;
  }

  /** True when the model has a batch axis. */
  async isBatchingSupported(options: { signal?: AbortSignal } = {}): Promise<boolean> {
    return (await this.modelConfig(options)).maxBatchSize > 0;
  }

  /** Refuses further calls, and resolves when the inferences under way have ended; streams are cancelled. */
  async close(): Promise<void> {
    this.#closed.abort(new TritonError("UNAVAILABLE", "the client is closed"));
    await this.finished();
    if (this.#ownsServer) this.server.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Resolves when what `close` is to wait for has ended. */
  protected finished(): Promise<void> {
    return Promise.resolve();
  }

  /** Aborts when the client is closed. */
  protected get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** The signature of the model, and the time that an inference may take. */
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

  /** All calls share one look at the model; after a failure the next call looks again. */
  #knownModel(): Promise<Model> {
    this.#model ??= this.#lookUp().catch((thrown: unknown) => {
      this.#model = undefined;
      throw thrown;
    });
    return this.#model;
  }

  async #lookUp(): Promise<Model> {
    await this.waitForModel();
    const { modelVersion } = this.options;
    const call = { modelVersion, signal: this.#closed.signal, timeoutMs: this.#initTimeoutMs };
    const config = await this.server.getModelConfig(this.modelName, call);
    return { config, signature: modelSignature(this.modelName, config) };
  }

  #wait(
    what: string,
    isReady: (call: WaitCallOptions) => Promise<boolean>,
    { timeoutMs = this.#initTimeoutMs, signal }: WaitCallOptions,
  ): Promise<void> {
    const signals = [signal, this.#closed.signal];
    const ask = (leftMs: number) => isReady({ signal, timeoutMs: Math.min(DEFAULT_TIMEOUT_MS, leftMs) });
    return waitUntil(ask, { what, timeoutMs, signals });
  }
}
