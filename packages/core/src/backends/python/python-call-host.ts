import { TritonError } from "@tritonjs/protocol";
import type { ModelCaller, TensorAnswer, TensorCaller } from "../../callable/model-caller.js";
import { readFlags } from "./batch-frame.js";
import { FrameBody, readTensors } from "./frames.js";
import { type FromPython, parametersJson, readParameters, type WireCall, writeError } from "./messages.js";

/** Responses in flight to a model that does not take them. */
const WINDOW = 16;

/** A call of another model in flight. */
interface OpenCall {
  /** Cancels the call. */
  readonly controller: AbortController;
  /** Asks the called model to stop sending responses; for calls with any number of responses. */
  readonly stop: AbortController | undefined;
  /** Responses that the model has not taken. */
  underWay: number;
  wake: (() => void) | undefined;
}

type CallMessage = Extract<FromPython, { type: "infer" | "taken" | "stop" | "end" }>;

/** Calls from a Python model to other models. */
export class PythonCallHost {
  readonly #open = new Map<number, OpenCall>();

  /** @param modelsOf calls models on behalf of a batch; undefined when the batch is complete */
  constructor(
    private readonly send: (header: object, body: FrameBody) => void,
    private readonly modelsOf: (batch: number) => (ModelCaller & Partial<TensorCaller>) | undefined,
  ) {}

  /** Handles a message of the model. */
  take(message: CallMessage, body: Uint8Array): void {
    const open = this.#open.get(message.call);
    if (message.type === "infer") this.#start(message, body);
    else if (message.type === "taken") taken(open);
    // The model asks for no more responses. It still takes those that arrive.
    else if (message.type === "stop") open?.stop?.abort();
    else this.#end(open);
  }

  #start(call: WireCall, body: Uint8Array): void {
    const stop = call.stream ? new AbortController() : undefined;
    const open: OpenCall = { controller: new AbortController(), stop, underWay: 0, wake: undefined };
    this.#open.set(call.call, open);
    void this.#run(call, body, open)
      .catch((error) => this.#answer(call.call, { outcome: refusal(call, error), final: true }))
      .finally(() => this.#open.delete(call.call));
  }

  /** Cancels a call. */
  #end(open: OpenCall | undefined): void {
    open?.controller.abort();
    open?.wake?.();
  }

  /** Cancels all calls when the process has ended. */
  endAll(): void {
    for (const open of [...this.#open.values()]) this.#end(open);
  }

  async #run(call: WireCall, body: Uint8Array, open: OpenCall): Promise<void> {
    const models = this.modelsOf(call.batch);
    if (models?.callWithTensors === undefined) {
      throw new TritonError(
        "CANCELLED",
        `the call of model '${call.model}' was cancelled: the batch that made it has ended`,
        {
          reason: "CALLER_ENDED",
        },
      );
    }
    const id = call.correlationId;
    const { sequenceStart, sequenceEnd } = readFlags(call.flags);
    const answers = models.callWithTensors(call.model, readTensors(call.inputs, body), {
      signal: open.controller.signal,
      stopSignal: open.stop?.signal,
      decoupled: call.stream,
      requestedOutputs: call.requested,
      id: call.id,
      parameters: readParameters(call.parameters),
      queueTimeoutMicroseconds: call.timeout,
      ...(call.version === -1 ? {} : { modelVersion: call.version }),
      sequence: {
        id: typeof id === "string" ? BigInt(id) : id[0],
        start: sequenceStart,
        end: sequenceEnd,
      },
    });
    for await (const answer of answers) {
      this.#answer(call.call, answer);
      open.underWay++;
      while (open.underWay >= WINDOW && !answer.final && !open.controller.signal.aborted) {
        await new Promise<void>((resolve) => {
          open.wake = resolve;
        });
      }
    }
  }

  #answer(call: number, { outcome, final }: TensorAnswer): void {
    const body = new FrameBody();
    const header = { type: "answer", call, last: final };
    if (TritonError.is(outcome)) this.send({ ...header, error: writeError(outcome) }, body);
    else if (outcome === undefined) this.send(header, body);
    else {
      const outputs = body.addTensors(outcome.outputs);
      this.send({ ...header, outputs, parameters: parametersJson(outcome.parameters) }, body);
    }
  }
}

/** Counts a response that the model has taken. */
function taken(open: OpenCall | undefined): void {
  if (open === undefined) return;
  open.underWay--;
  open.wake?.();
}

/** The error of a call that was not made, in Triton's words. */
function refusal({ model }: WireCall, thrown: unknown): TritonError {
  const error = TritonError.from(thrown);
  if (error.code === "CANCELLED") return error;
  return new TritonError(
    "INTERNAL",
    `Model ${model} - Error when running inference: ${refusalText(model, error)}`,
    { cause: error },
  );
}

function refusalText(model: string, { code, message }: TritonError): string {
  // The text of every look-up of a model or version that is unknown or not ready.
  if (message.startsWith("Request for unknown model: ")) {
    return `Failed for execute the inference request. Model '${model}' is not ready.`;
  }
  return code === "UNSUPPORTED"
    ? `Model ${model} is using the decoupled. The current BLS request call doesn't support models using the ` +
        "decoupled transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls for " +
        "decoupled models.'"
    : message;
}
