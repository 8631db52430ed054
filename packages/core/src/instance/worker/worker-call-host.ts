import type { CallOutputs, ContextCallOptions, ModelCaller } from "../../callable/model-caller.js";
import { responseParameters } from "../../response/response-parameters.js";
import { type FromWorker, packError, type ToWorker } from "./messages.js";
import { packValues } from "./wire-values.js";

type Call = Extract<FromWorker, { type: "call" }>;

/** A call in flight: an iterator over its answers, and the means to cancel it. */
interface OpenCall {
  readonly controller: AbortController;
  readonly answers: AsyncIterator<CallOutputs, void>;
}

/** The main thread's side of calls that a worker makes to other models. Each answer is sent on demand. */
export class CallsOfWorker {
  readonly #open = new Map<number, OpenCall>();

  /** @param modelsOf returns the caller of models for a batch; undefined if the batch is over */
  constructor(
    private readonly post: (message: ToWorker, transfer: ArrayBuffer[]) => void,
    private readonly modelsOf: (batch: number) => ModelCaller | undefined,
  ) {}

  /** Handles a message of the worker. */
  take(message: Extract<FromWorker, { type: "call" | "next" | "end" }>): void {
    if (message.type === "call") this.#start(message);
    else if (message.type === "next") this.#next(message.call);
    else this.#end(message.call);
  }

  #start(message: Call): void {
    const models = this.modelsOf(message.batch);
    if (models === undefined) {
      const text = `the call of model '${message.modelName}' was cancelled: the batch that made it has ended`;
      const error = { code: "CANCELLED", message: text, reason: "CALLER_ENDED" } as const;
      this.post({ type: "answer", call: message.call, error }, []);
      return;
    }
    const controller = new AbortController();
    const options = { ...message.options, signal: controller.signal };
    const { modelName, inputs } = message;
    const answers = message.stream
      ? models.stream(modelName, inputs, options)
      : single(models, message, options);
    this.#open.set(message.call, { controller, answers });
    if (!message.stream) this.#next(message.call);
  }

  /** Sends the next answer to the worker. */
  #next(call: number): void {
    const open = this.#open.get(call);
    if (open === undefined) return;
    open.answers.next().then(
      ({ done, value }) => {
        if (done) this.#open.delete(call);
        const transfer: ArrayBuffer[] = [];
        const outputs =
          done || value === undefined
            ? {}
            : { outputs: packValues(value, transfer), parameters: responseParameters(value) };
        this.post({ type: "answer", call, ...outputs }, transfer);
      },
      (thrown) => {
        this.#open.delete(call);
        this.post({ type: "answer", call, error: packError(thrown) }, []);
      },
    );
  }

  /** Ends a call that the worker cancels or needs no more answers of. */
  #end(call: number): void {
    const open = this.#open.get(call);
    this.#open.delete(call);
    open?.controller.abort();
    void Promise.resolve(open?.answers.return?.()).catch(() => {});
  }

  /** Ends all calls, because the worker has ended. */
  endAll(): void {
    for (const call of [...this.#open.keys()]) this.#end(call);
  }
}

async function* single(models: ModelCaller, { modelName, inputs }: Call, options: ContextCallOptions) {
  yield await models.infer(modelName, inputs, options);
}
