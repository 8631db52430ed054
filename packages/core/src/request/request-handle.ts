import type { TritonError } from "@tritonjs/protocol";

/** The sender's control over a request. */
export interface RequestHandle {
  /** Id that the client set, or an empty string. */
  readonly id: string;
  /** True once the request is over. */
  readonly settled: boolean;
  /**
   * True if the model has refused the request after `infer` returned, as it may in another thread. The refusal is the
   * only outcome. Undefined otherwise.
   */
  readonly refused?: boolean;
  /**
   * Cancels the request. Returns false if it was already over.
   *
   * @param reason error that the request is answered with; CANCELLED by default
   */
  cancel(reason?: TritonError): boolean;
  /** Tells the model that no more answers are wanted. Returns false if the model cannot be told. */
  askToStop(): boolean;
  /** Applies back-pressure: a decoupled model waits before it makes the next response. */
  pause(): void;
  /** Ends the back-pressure: the consumer can take responses again. */
  resume(): void;
}
