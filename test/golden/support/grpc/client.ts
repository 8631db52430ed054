import { type CallOptions, Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import type { GrpcCase, JsonMessage, RecordedStatus } from "./grpc-case.js";
import { decodeMessage, encodeMessage, type Rpc } from "./protocol.js";

/** The end of a unary call. */
export interface UnaryResult {
  readonly response: JsonMessage | null;
  readonly status: RecordedStatus;
}

/** A unary call in flight. */
export interface UnaryCall {
  readonly result: Promise<UnaryResult>;
  cancel(): void;
}

const compressionAlgorithms = { deflate: 1, gzip: 2 } as const;

/** A client of the recorded calls; one for each kind of compression. */
export function connectTo(url: string, compression?: "gzip" | "deflate"): Client {
  return new Client(url, credentials.createInsecure(), {
    "grpc.max_receive_message_length": -1,
    "grpc.max_send_message_length": -1,
    "grpc.use_local_subchannel_pool": 1,
    ...(compression === undefined
      ? {}
      : { "grpc.default_compression_algorithm": compressionAlgorithms[compression] }),
  });
}

/** Metadata of a recorded call. */
export function metadataOf(recorded: GrpcCase): Metadata {
  const metadata = new Metadata();
  for (const [key, value] of recorded.metadata) metadata.add(key, value);
  return metadata;
}

/** Options of a call with a deadline of `deadlineMs` milliseconds. */
export function callOptions(deadlineMs: number | undefined): CallOptions {
  return deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
}

/** Turns the numeric status of a call into the words of the recordings. */
export function statusOf(ended: { code: number; details: string }): RecordedStatus {
  return { code: status[ended.code] ?? String(ended.code), details: ended.details };
}

/** Starts a unary call. */
export function unary(
  client: Client,
  rpc: Rpc,
  message: JsonMessage | Buffer,
  metadata: Metadata,
  deadlineMs?: number,
): UnaryCall {
  let cancel = (): void => {};
  const result = new Promise<UnaryResult>((resolve) => {
    const done = (error: ServiceError | null, response?: JsonMessage): void => {
      if (error !== null) resolve({ response: null, status: statusOf(error) });
      else resolve({ response: response ?? null, status: { code: "OK", details: "" } });
    };
    const call = client.makeUnaryRequest(
      rpc.path,
      (request: JsonMessage | Buffer) =>
        Buffer.isBuffer(request) ? request : encodeMessage(rpc.request, request),
      (bytes: Buffer) => decodeMessage(rpc.response, bytes),
      message,
      metadata,
      callOptions(deadlineMs),
      done,
    );
    cancel = () => call.cancel();
  });
  return { result, cancel: () => cancel() };
}
