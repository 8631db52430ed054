import { VirtualClock } from "@tritonjs/testing";
import { LoadLoop, type LoopPlan } from "../../src/load/load-loop.js";
import type { LoadRequest } from "../../src/target/carrier.js";

/** How the simulated server answers a request. */
export interface SimulatedAnswer {
  /** Times of its responses after the send, in milliseconds. */
  readonly responsesMs: readonly number[];
  /** When it ends after the send. */
  readonly endMs: number;
  readonly failure?: string;
}

/** A request as it was sent. */
export interface SentRequest {
  readonly at: number;
  readonly scheduled: number;
  readonly payload: number;
  readonly sequenceId: number;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** A loop under a virtual clock, whose carrier answers request number `n` as `answerOf(n)` tells. */
export class LoopBench {
  readonly clock = new VirtualClock();
  readonly sent: SentRequest[] = [];
  readonly loop: LoadLoop;

  constructor(
    answerOf: (n: number) => SimulatedAnswer,
    share = { index: 0, count: 1 },
    sequences?: LoopPlan["sequences"],
  ) {
    const kept = { responses: false, outputs: false, tokens: false };
    this.loop = new LoadLoop(
      { share, seed: 3, payloads: 100, kept, ...(sequences !== undefined && { sequences }) },
      (_, onEnd) => ({
        bytesSent: 0,
        bytesReceived: 0,
        send: (request) => this.#send(request, answerOf(this.sent.length), onEnd),
        cancel: () => {},
        close: () => {},
      }),
      {
        now: () => this.clock.now(),
        wakeAt: (time, run) => this.clock.setTimer(Math.max(0, time - this.clock.now()), run),
      },
    );
  }

  #send(
    request: LoadRequest,
    { responsesMs, endMs, failure }: SimulatedAnswer,
    onEnd: (request: LoadRequest) => void,
  ): void {
    const { scheduled, payload, sequenceId, sequenceStart: isFirst, sequenceEnd: isLast } = request;
    request.sent = this.clock.now();
    this.sent.push({ at: request.sent, scheduled, payload, sequenceId, isFirst, isLast });
    for (const after of responsesMs) this.clock.setTimer(after, () => request.responded(this.clock.now()));
    this.clock.setTimer(endMs, () => {
      request.end = this.clock.now();
      if (failure !== undefined) request.fail(failure);
      onEnd(request);
    });
  }
}
