import type { InferenceResponse, InferenceService, RequestHandle } from "@tritonjs/core/frontend";
import { type ParameterValue, Tensor, TritonError } from "@tritonjs/protocol";
import type { TensorDataSet, TensorPayload, TestedModel } from "../data/data-set.js";
import {
  type EndListener,
  epochNow,
  type LoadCarrier,
  type LoadRequest,
  outputFault,
  outputsJson,
  type ResponseHandling,
} from "./carrier.js";
import { FreshValues } from "./wire-template.js";

/** Parts of an in-process carrier. */
export interface InProcessParts {
  readonly service: InferenceService;
  readonly model: TestedModel;
  readonly data: TensorDataSet;
  readonly parameters: Readonly<Record<string, ParameterValue>>;
  readonly handling: ResponseHandling;
  readonly seed: number;
}

/** Calls a model in this process as a frontend does: through its queue, without a network. */
export class InProcessCarrier implements LoadCarrier {
  readonly bytesSent = 0;
  readonly bytesReceived = 0;
  readonly #parts: InProcessParts;
  readonly #onEnd: EndListener;
  readonly #payloads: readonly ReadonlyMap<string, Tensor>[];
  readonly #values: FreshValues;
  readonly #calls = new Set<InProcessCall>();
  readonly #ended: LoadRequest[] = [];
  #isClosed = false;

  constructor(parts: InProcessParts, onEnd: EndListener) {
    this.#parts = parts;
    this.#onEnd = onEnd;
    this.#payloads = parts.data.payloads.map(tensorsOf);
    this.#values = new FreshValues(parts.seed);
  }

  send(request: LoadRequest): void {
    const { service, model, parameters } = this.#parts;
    const call = new InProcessCall(request);
    this.#calls.add(call);
    request.carried = call;
    const inputs = this.#inputsOf(request);
    request.sent = epochNow();
    try {
      const pinned = service.model(model.name, model.version);
      call.handle = pinned.infer(
        {
          inputs,
          parameters: { ...parameters },
          correlationId: request.sequenceId === 0 ? undefined : BigInt(request.sequenceId),
          sequenceStart: request.sequenceStart,
          sequenceEnd: request.sequenceEnd,
        },
        (outcome, final) => this.#answered(call, outcome, final),
      );
      request.sendEnd = epochNow();
    } catch (cause) {
      this.#answered(call, TritonError.from(cause), true);
    }
  }

  cancel(request: LoadRequest, text: string): void {
    const call = request.carried as InProcessCall | undefined;
    // Without a call it has ended, and the loop hears of it in the next turn.
    if (call === undefined) return;
    request.fail(text);
    request.end = epochNow();
    call.isOver = true;
    this.#calls.delete(call);
    call.handle?.cancel();
    this.#end(request);
  }

  close(): void {
    this.#isClosed = true;
    for (const call of this.#calls) {
      call.isOver = true;
      call.handle?.cancel();
    }
    this.#calls.clear();
  }

  #answered(call: InProcessCall, outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    if (call.isOver) return;
    const { request } = call;
    const now = epochNow();
    if (outcome instanceof Error) request.fail(outcome.message);
    else if (outcome !== undefined) {
      request.responded(now);
      request.end = now;
      this.#read(request, outcome.outputs);
    }
    if (!final) return;
    call.isOver = true;
    this.#calls.delete(call);
    if (Number.isNaN(request.end) || request.failure !== undefined) request.end = now;
    this.#end(request);
  }

  /**
   * Tells the loop in the next turn of the event loop, as a socket would. The next request would else start in the same
   * turn, and a model that answers at once would never let the event loop go on.
   */
  #end(request: LoadRequest): void {
    request.carried = undefined;
    if (this.#ended.push(request) > 1) return;
    setImmediate(() => {
      for (const ended of this.#ended.splice(0)) if (!this.#isClosed) this.#onEnd(ended);
    });
  }

  #read(request: LoadRequest, outputs: ReadonlyMap<string, Tensor>): void {
    const { data, handling } = this.#parts;
    const { expected } = data.payloads[request.payload]!;
    if (handling.keepOutputs) request.responseOutputs?.push(outputsJson(outputs));
    const fault = expected && outputFault(expected, outputs);
    if (fault !== undefined) request.fail(fault);
  }

  /** The tensors of a payload; the one with fresh values is a copy. */
  #inputsOf(request: LoadRequest): ReadonlyMap<string, Tensor> {
    const payload = this.#parts.data.payloads[request.payload]!;
    const tensors = this.#payloads[request.payload]!;
    const input = payload.inputs.find(({ fresh }) => fresh !== undefined);
    if (input?.fresh === undefined) return tensors;
    const bytes = Uint8Array.from(input.bytes);
    this.#values.fill(bytes, input.fresh.offset, input.fresh.byteSize, input.datatype, request.number);
    return new Map(tensors).set(input.name, Tensor.fromBytes(input.datatype, input.shape, bytes));
  }
}

class InProcessCall {
  handle: RequestHandle | undefined;
  isOver = false;

  constructor(readonly request: LoadRequest) {}
}

const tensorsOf = ({ inputs }: TensorPayload): ReadonlyMap<string, Tensor> =>
  new Map(inputs.map(({ name, datatype, shape, bytes }) => [name, Tensor.fromBytes(datatype, shape, bytes)]));
