import type { DataType } from "@tritonjs/protocol";

/** Bytes of a tensor that each request replaces with new random values, so that no two requests carry equal data. */
export interface FreshRange {
  /** Start in the bytes of the tensor. */
  readonly offset: number;
  readonly byteSize: number;
}

/** An input of a payload, with its batch axis. */
export interface PayloadTensor {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  /** Little-endian elements in row-major order; BYTES elements with their lengths. */
  readonly bytes: Uint8Array;
  /** Only in random data. */
  readonly fresh?: FreshRange;
}

/** An output that a response must have, byte by byte. */
export interface ExpectedOutput {
  readonly name: string;
  readonly datatype: DataType;
  readonly bytes: Uint8Array;
}

/** The tensors of one request. */
export interface TensorPayload {
  readonly inputs: readonly PayloadTensor[];
  readonly expected?: readonly ExpectedOutput[];
}

/** Payloads that are the steps of one sequence. */
export interface PayloadStream {
  /** Index of its first payload. */
  readonly first: number;
  readonly count: number;
}

/** What requests to a model carry. Request `n` carries payload `n` modulo their number. */
export interface TensorDataSet {
  readonly kind: "tensors";
  readonly payloads: readonly TensorPayload[];
  /** For sequence models: each sequence picks a stream. */
  readonly streams: readonly PayloadStream[];
  /** True when the steps come from the user, so that the length of a sequence is that of its stream. */
  readonly hasGivenSteps: boolean;
  /** Rows of each request. */
  readonly batchSize: number;
  /** When to send each payload, in milliseconds from the start. Only where the data has timestamps. */
  readonly timestampsMs?: readonly number[];
}

/** A conversation, or another sequence of requests that wait for each other. */
export interface Session {
  readonly id: string;
  readonly turns: readonly SessionTurn[];
}

export interface SessionTurn {
  /** Index of its payload. */
  readonly payload: number;
  /** Time from its answer to the next turn, in milliseconds. */
  readonly delayMs: number;
}

/** What requests to an OpenAI endpoint carry. */
export interface OpenAiDataSet {
  readonly kind: "openai";
  /** Bodies of requests: JSON text. */
  readonly payloads: readonly string[];
  readonly batchSize: 1;
  readonly timestampsMs?: readonly number[];
  /** The payloads as turns of sessions, in the order of their first turns. Only where the data was read with them. */
  readonly sessions?: readonly Session[];
}

export type DataSet = TensorDataSet | OpenAiDataSet;
