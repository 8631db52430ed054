import { getEventListeners } from "node:events";
import { Tensor, type Triton, TritonError } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import type { InferenceRequest } from "@tritonjs/testing";
import { sendRequest } from "../support/send-request.js";
import type { StressModel } from "./stress-models.js";

/** A request to a model, and other events around it. */
export interface Ask {
  readonly model: StressModel;
  /** Decides what the model does, and so its answer. */
  readonly value: number;
  readonly rows: number;
  readonly priority: number;
  /** Time when the client stops waiting, in milliseconds. */
  readonly deadline: number | undefined;
  readonly sequence: { readonly id: bigint; readonly start: boolean; readonly end: boolean } | undefined;
  /** Responses of a stream after which its reader leaves. */
  readonly leavesAfter: number;
}

/** One request and all of its observed responses and ends. */
export class RequestHandle {
  /** Each observed end with its time: there must be exactly one. */
  readonly ends: { readonly text: string; readonly at: number }[] = [];
  readonly values: number[] = [];
  /** Responses observed after the end. */
  late = 0;
  cancelledAt: number | undefined;
  /** True unless it was rejected at once. */
  accepted = true;
  /** Undefined when it was refused at once. */
  #request: InferenceRequest | undefined;

  constructor(
    readonly ask: Ask,
    triton: Triton,
    private readonly now: () => number,
  ) {
    const { model, value, rows, priority, deadline, sequence } = ask;
    const init = {
      inputs: new Map([["x", Tensor.fromElements("INT32", [rows, 1], new Int32Array(rows).fill(value))]]),
      priority,
      ...(deadline === undefined ? {} : { deadline }),
      ...(sequence && {
        correlationId: sequence.id,
        sequenceStart: sequence.start,
        sequenceEnd: sequence.end,
      }),
    };
    try {
      const sent = sendRequest(serviceOf(triton).model(model.name, ""), init, (outcome, final, request) => {
        this.#request = request as InferenceRequest;
        if (this.ends.length > 0) this.late++;
        if (outcome !== undefined && !TritonError.is(outcome)) {
          this.values.push(...(outcome.outputs.get("y")!.elements as Int32Array));
        }
        if (final) this.#end(TritonError.is(outcome) ? `${outcome.code} ${outcome.message}` : "answered");
        else if (this.values.length >= ask.leavesAfter) this.cancel();
      });
      this.#request = sent as InferenceRequest;
    } catch (error) {
      this.accepted = false;
      const { code, message } = TritonError.from(error);
      this.#end(`${code} ${message}`);
    }
  }

  cancel(): void {
    if (this.ends.length > 0) return;
    this.cancelledAt ??= this.now();
    this.#request?.cancel();
  }

  /** Listeners left on the request's signal. */
  get abortListeners(): number {
    return this.#request === undefined ? 0 : getEventListeners(this.#request.signal, "abort").length;
  }

  #end(text: string): void {
    this.ends.push({ text, at: this.now() });
  }
}
