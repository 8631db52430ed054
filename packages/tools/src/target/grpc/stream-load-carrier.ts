import type { inference } from "@tritonjs/grpc-messages";
import type { EndListener, LoadCarrier } from "../carrier.js";
import { epochNow } from "../epoch-time.js";
import { outputFault } from "../expected-outputs.js";
import type { LoadRequest } from "../load-request.js";
import { outputsJson } from "../outputs-json.js";
import type { GrpcCarrierParts } from "./grpc-load-carrier.js";
import { outputTensors } from "./infer-response.js";
import { InferStream, type StreamOwner } from "./infer-stream.js";

/** Streams that a thread opens at most; further requests share them. */
const MOST_STREAMS = 512;

/**
 * Sends requests on streams of `ModelStreamInfer`. A stream has one request in flight as long as there are streams
 * enough. All requests of a sequence go over one stream, which keeps their order.
 */
export class StreamLoadCarrier implements LoadCarrier, StreamOwner {
  readonly #parts: GrpcCarrierParts;
  readonly #onEnd: EndListener;
  readonly #isDecoupled: boolean;
  readonly #streams: InferStream[] = [];
  readonly #ofSequence = new Map<number, InferStream>();
  #next = 0;

  constructor(parts: GrpcCarrierParts, isDecoupled: boolean, onEnd: EndListener) {
    this.#parts = parts;
    this.#isDecoupled = isDecoupled;
    this.#onEnd = onEnd;
  }

  get bytesSent(): number {
    return this.#parts.sessions.bytesSent;
  }

  get bytesReceived(): number {
    return this.#parts.sessions.bytesReceived;
  }

  send(request: LoadRequest): void {
    const stream = this.#streamFor(request);
    const { requests } = this.#parts;
    requests.stamp(request);
    request.carried = stream;
    request.sent = epochNow();
    if (stream === undefined) this.fault(request, "the server accepts no further stream", false);
    else stream.send(request, requests.prefix!, requests.rest);
  }

  cancel(request: LoadRequest, text: string): void {
    (request.carried as InferStream | undefined)?.forget(request);
    request.fail(text);
    this.#ended(request);
  }

  close(): void {
    this.#streams.length = 0;
    this.#parts.sessions.close();
  }

  /** For streams. */
  responded(request: LoadRequest, response: inference.ModelInferResponse.$Properties, now: number): boolean {
    const isEmpty = (response.outputs?.length ?? 0) === 0;
    const isFinal = response.parameters?.triton_final_response?.boolParam === true;
    if (!isEmpty) {
      request.responded(now);
      request.end = now;
      this.#read(request, response);
    }
    const isOver = this.#isDecoupled ? isFinal : true;
    if (isOver) this.#ended(request);
    return isOver;
  }

  /** For streams. */
  fault(request: LoadRequest, text: string, isConnectionLost: boolean): void {
    request.fail(text);
    request.isConnectionLost = isConnectionLost;
    request.end = epochNow();
    this.#ended(request);
  }

  /** For streams. */
  closed(stream: InferStream): void {
    const index = this.#streams.indexOf(stream);
    if (index >= 0) this.#streams.splice(index, 1);
    for (const [id, of] of this.#ofSequence) if (of === stream) this.#ofSequence.delete(id);
  }

  #read(request: LoadRequest, response: inference.ModelInferResponse.$Properties): void {
    const { expected, handling } = this.#parts;
    const outputs = expected?.[request.payload];
    if (outputs === undefined && !handling.keepOutputs) return;
    try {
      const tensors = outputTensors(response);
      if (handling.keepOutputs) request.responseOutputs?.push(outputsJson(tensors));
      const fault = outputs && outputFault(outputs, tensors);
      if (fault !== undefined) request.fail(fault);
    } catch (cause) {
      request.fail(`cannot read the response: ${(cause as Error).message}`);
    }
  }

  #ended(request: LoadRequest): void {
    request.carried = undefined;
    // An empty final response says nothing of the time until the last one with outputs.
    if (Number.isNaN(request.end)) request.end = epochNow();
    if (request.sequenceEnd) this.#ofSequence.delete(request.sequenceId);
    this.#onEnd(request);
  }

  #streamFor({ sequenceId }: LoadRequest): InferStream | undefined {
    const known = sequenceId === 0 ? undefined : this.#ofSequence.get(sequenceId);
    if (known !== undefined) return known;
    const stream = this.#streams.find((one) => one.inFlight === 0) ?? this.#open() ?? this.#shared();
    if (sequenceId !== 0 && stream !== undefined) this.#ofSequence.set(sequenceId, stream);
    return stream;
  }

  #open(): InferStream | undefined {
    const session = this.#streams.length < MOST_STREAMS ? this.#parts.sessions.take() : undefined;
    if (session === undefined) return undefined;
    const stream = new InferStream(this, session);
    this.#streams.push(stream);
    return stream;
  }

  #shared(): InferStream | undefined {
    const { length } = this.#streams;
    return length === 0 ? undefined : this.#streams[this.#next++ % length];
  }
}
