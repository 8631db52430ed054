import { cancelled, NO_PARAMETERS, ndArrayOf, TritonError } from "@tritonjs/protocol";
import type {
  CallInputs,
  CallOutputs,
  ContextCallOptions,
  ModelCaller,
} from "../../callable/model-caller.js";

import { withParameters } from "../../response/response-parameters.js";
import { type FromWorker, type ToWorker, unpackError } from "./messages.js";
import { packValues } from "./wire-values.js";

type Answer = Extract<ToWorker, { type: "answer" }>;

/** The worker's side of calls to other models, which the main thread makes. */
export class CallsToModels {
  #next = 0;
  /** Callbacks for the next answer to each call. */
  readonly #waiting = new Map<number, (answer: Answer) => void>();

  constructor(private readonly post: (message: FromWorker, transfer: ArrayBuffer[]) => void) {}

  /** @param batch batch on whose behalf the models are called */
  of(batch: number): ModelCaller {
    return {
      infer: async <R>(modelName: string, inputs: CallInputs, options: ContextCallOptions = {}) => {
        const call = this.#start(batch, modelName, inputs, options, false);
        try {
          return (await this.#answer(call, modelName, options.signal)) as R;
        } finally {
          this.post({ type: "end", call }, []);
        }
      },
      stream: <R>(modelName: string, inputs: CallInputs, options: ContextCallOptions = {}) =>
        this.#stream(batch, modelName, inputs, options) as AsyncGenerator<unknown> as AsyncGenerator<
          R,
          void,
          void
        >,
    };
  }

  answer(message: Answer): void {
    const waiting = this.#waiting.get(message.call);
    this.#waiting.delete(message.call);
    waiting?.(message);
  }

  async *#stream(
    batch: number,
    modelName: string,
    inputs: CallInputs,
    options: ContextCallOptions,
  ): AsyncGenerator<CallOutputs, void, void> {
    const call = this.#start(batch, modelName, inputs, options, true);
    try {
      for (;;) {
        const next = this.#answer(call, modelName, options.signal);
        this.post({ type: "next", call }, []);
        const outputs = await next;
        if (outputs === undefined) return;
        yield outputs;
      }
    } finally {
      this.post({ type: "end", call }, []);
    }
  }

  #start(
    batch: number,
    modelName: string,
    inputs: CallInputs,
    options: ContextCallOptions,
    stream: boolean,
  ): number {
    const { signal, ...rest } = options;
    if (signal?.aborted) throw cancelled(signal.reason);
    const call = this.#next++;
    const transfer: ArrayBuffer[] = [];
    const values = packValues(inputs, transfer);
    try {
      this.post({ type: "call", call, batch, modelName, inputs: values, options: rest, stream }, transfer);
    } catch (error) {
      const why = TritonError.from(error).message;
      throw new TritonError(
        "INVALID_ARG",
        `cannot send the inputs of a call of model '${modelName}': ${why}`,
        { reason: "INVALID_INPUT" },
      );
    }
    return call;
  }

  #answer(
    call: number,
    modelName: string,
    signal: AbortSignal | undefined,
  ): Promise<CallOutputs | undefined> {
    return new Promise((resolve, reject) => {
      const abort = () => {
        this.#waiting.delete(call);
        reject(cancelled(signal?.reason));
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#waiting.set(call, ({ outputs, parameters = NO_PARAMETERS, error }) => {
        signal?.removeEventListener("abort", abort);
        if (error !== undefined) reject(unpackError(error));
        else resolve(outputs && withParameters(toArrays(outputs, modelName), parameters));
      });
    });
  }
}

function toArrays(outputs: Readonly<Record<string, unknown>>, modelName: string): CallOutputs {
  const arrays = Object.entries(outputs as CallOutputs).map(([name, { data, shape }]) => [
    name,
    ndArrayOf(data, shape, "output", name, modelName),
  ]);
  return Object.fromEntries(arrays);
}
