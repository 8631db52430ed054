import type { InferInit, RequestHandle, ResponseHandler } from "@tritonjs/core/frontend";
import { errorWithoutStack, type ModelConfig, type TritonError } from "@tritonjs/protocol";
import type { TraceEnd } from "../engine/engine-requests.js";
import { KIND } from "../frames/frame-kind.js";
import type { IncomingFrame } from "../frames/incoming-frame.js";
import { writeRequest } from "../frames/request-frame.js";
import { RequestSlots } from "../frames/request-slots.js";
import { type AnsweredRequest, RESPONSE, readOutcome, writeFramedError } from "../frames/response-frame.js";
import type { ThreadLink } from "../link/thread-link.js";
import type { MirroredModel } from "./mirrored-models.js";
import { MirroredTrace } from "./mirrored-tracing.js";

/** The requests of a thread that the engine has not answered yet. */
export class SentRequests {
  readonly #link: () => ThreadLink;
  readonly #requests = new RequestSlots<SentRequest>();

  constructor(link: () => ThreadLink) {
    this.#link = link;
  }

  /** Sends a request to the engine. Memory of its large tensors is handed over. */
  send(model: MirroredModel, init: InferInit, onResponse: ResponseHandler): RequestHandle {
    const request = new SentRequest(this, init.id ?? "", model, onResponse);
    const number = this.#requests.add(request);
    request.number = number;
    try {
      const link = this.#link();
      const trace =
        init.trace instanceof MirroredTrace
          ? init.trace.sentWith((end) => this.#endTrace(number, end))
          : undefined;
      writeRequest(link.outgoing, number, model, init, trace);
      link.send();
    } catch (error) {
      this.#requests.delete(number);
      throw error;
    }
    return request;
  }

  /** Takes a response. Those to requests that were given up have no effect. */
  frame(frame: IncomingFrame): void {
    this.#requests.get(frame.number)?.receive(frame);
  }

  /** Notes that a request is over. */
  over(number: number): void {
    this.#requests.delete(number);
  }

  /** Ends a trace behind its request, which may still wait to be read. */
  #endTrace(number: number, end: TraceEnd): void {
    const link = this.#link();
    link.outgoing.open(KIND.traced, number).text(JSON.stringify(end));
    link.outgoing.close(0);
    link.send();
  }

  /** Tells the engine something about a request. */
  tell(number: number, kind: number, reason?: TritonError): void {
    const link = this.#link();
    link.outgoing.open(kind, number);
    if (reason !== undefined) writeFramedError(link.outgoing, reason);
    link.outgoing.close(0);
    link.send();
  }
}

/** A request that is with the engine. */
class SentRequest implements RequestHandle, AnsweredRequest {
  settled = false;
  refused = false;
  number = 0;
  readonly id: string;
  readonly modelName: string;
  readonly modelVersion: string;
  readonly config: Pick<ModelConfig, "output">;
  readonly #requests: SentRequests;
  readonly #onResponse: ResponseHandler;
  #paused = false;

  constructor(
    requests: SentRequests,
    id: string,
    { name, version, config }: MirroredModel,
    onResponse: ResponseHandler,
  ) {
    this.#requests = requests;
    this.id = id;
    this.modelName = name;
    this.modelVersion = String(version);
    this.config = config;
    this.#onResponse = onResponse;
  }

  receive(frame: IncomingFrame): void {
    const outcome = readOutcome(frame, this);
    const final = (frame.flags & RESPONSE.final) !== 0;
    this.refused = (frame.flags & RESPONSE.refused) !== 0;
    if (final) this.#end();
    this.#handOver(outcome, final);
  }

  cancel(given?: TritonError): boolean {
    if (this.settled) return false;
    const reason = given ?? errorWithoutStack("CANCELLED", "the request was cancelled");
    this.#end();
    this.#requests.tell(this.number, KIND.cancel, reason);
    this.#handOver(reason, true);
    return true;
  }

  /** The model may not be able to stop. This thread does not wait to learn that. */
  askToStop(): boolean {
    if (!this.settled) this.#requests.tell(this.number, KIND.stop);
    return !this.settled;
  }

  pause(): void {
    if (this.settled || this.#paused) return;
    this.#paused = true;
    this.#requests.tell(this.number, KIND.pause);
  }

  resume(): void {
    if (this.settled || !this.#paused) return;
    this.#paused = false;
    this.#requests.tell(this.number, KIND.resume);
  }

  #end(): void {
    this.settled = true;
    this.#requests.over(this.number);
  }

  #handOver(outcome: Parameters<ResponseHandler>[0], final: boolean): void {
    try {
      this.#onResponse(outcome, final, this);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }
}
