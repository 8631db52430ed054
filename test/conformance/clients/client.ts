import type { DataType } from "@tritonjs/core";

/** One element of a tensor: BOOL as 0 or 1, FP16 and BF16 as their 16 bits, BYTES as bytes. */
export type Element = number | bigint | Uint8Array;

/** A tensor as a client sends or receives it, its elements in row-major order. */
export interface NamedTensor {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly elements: readonly Element[];
}

/** A parameter of a request. */
export type Parameter = string | number | bigint | boolean;

/** One inference, independent of the client that sends it. */
export interface InferCall {
  readonly model: string;
  readonly version?: number;
  readonly id?: string;
  readonly inputs: readonly NamedTensor[];
  /** Requested outputs; all outputs when unset. */
  readonly outputs?: readonly string[];
  readonly parameters?: Readonly<Record<string, Parameter>>;
  /**
   * Cancels the request as a user of this client would: by aborting it, closing its connection, or cancelling its
   * call.
   */
  readonly signal?: AbortSignal;
}

/** The answer; an in-process call returns only the outputs. */
export interface Answer {
  readonly model?: string;
  readonly version?: string;
  readonly id?: string;
  readonly outputs: readonly NamedTensor[];
}

/** The clients for a server with default options, one request at a time. */
export const WAYS = ["in process", "HTTP JSON", "HTTP binary", "gRPC raw", "gRPC typed"] as const;

/** All clients: also gRPC on a stream, and gRPC over both of its transports. */
export const ALL_WAYS = [
  ...WAYS,
  "gRPC stream",
  "gRPC raw over grpc-js",
  "gRPC stream over grpc-js",
] as const;

export type Way = (typeof ALL_WAYS)[number];

/** Sends inferences in one way. */
export interface Client {
  readonly way: Way;
  /** Rejects with a {@link Refusal} when the server answers with an error. */
  infer(call: InferCall): Promise<Answer>;
  close(): void;
}

/** An error that the server answered. */
export class Refusal extends Error {
  override readonly name = "Refusal";

  constructor(
    /** The status in terms of the client: one of our codes, an HTTP status, or a gRPC status name. */
    readonly status: string | number,
    message: string,
  ) {
    super(message);
  }
}
