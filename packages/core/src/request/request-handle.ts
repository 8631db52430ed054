import type { TritonError } from "@tritonjs/protocol";

/** A request in the hands of whoever sent it. */
export interface RequestHandle {
  /** Id that the client gave, or an empty string. */
  readonly id: string;
  /** True once the request is over. */
  readonly settled: boolean;
  /**
   * Gives the request up. Returns false when it was already over.
   *
   * @param reason what the request is answered with; CANCELLED unless given
   */
  cancel(reason?: TritonError): boolean;
  /** Tells the model that nobody wants more answers. Returns false when the model cannot be told. */
  askToStop(): boolean;
  /** The consumer cannot take more responses for now: a decoupled model waits before it makes the next. */
  pause(): void;
  /** The consumer can take responses again. */
  resume(): void;
}
