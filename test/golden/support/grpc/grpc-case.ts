/** A message in protobuf's JSON mapping, with proto field names. */
export type JsonMessage = Readonly<Record<string, unknown>>;

/** The end of a call. */
export interface RecordedStatus {
  readonly code: string;
  readonly details: string;
}

/** One event on a stream or among parallel calls, in the order in which the client saw it. */
export interface RecordedEvent {
  /** Number of the call among several. */
  readonly call?: string;
  readonly send?: JsonMessage;
  readonly recv?: JsonMessage | null;
  readonly sleep_ms?: number;
  readonly half_close?: true;
  readonly cancel?: true;
  readonly status?: RecordedStatus;
  readonly deadline_ms?: number;
}

/** Judgement of a case. */
export type CaseFlag = "bug" | "racy" | "unordered" | "backend" | "build" | "version";

/** One line of `grpc/cases.jsonl`. */
export interface GrpcCase {
  readonly id: string;
  readonly area: string;
  readonly rpc: string;
  readonly server: "default" | "explicit" | "notready" | "restricted" | "restricted2" | "flags";
  readonly metadata: readonly (readonly [string, string])[];
  readonly request?: JsonMessage | null;
  /** Raw bytes (base64) sent instead of `request`. */
  readonly request_wire?: string;
  readonly request_compression?: "gzip" | "deflate";
  readonly deadline_ms?: number;
  readonly response?: JsonMessage | null;
  readonly status?: RecordedStatus;
  readonly events?: readonly RecordedEvent[];
  readonly form?: "parallel";
  readonly flags?: readonly CaseFlag[];
  readonly group?: string;
  readonly note?: string;
  /** Contents of the client's shared memory objects before and after the call. */
  readonly shm_before?: readonly RecordedObject[];
  readonly shm_after?: readonly RecordedObject[];
}

/** The contents of a shared memory object, as base64. */
export interface RecordedObject {
  readonly key: string;
  readonly bytes?: string;
}

/** Names of the models that a case addresses. */
export function modelsOf(recorded: GrpcCase): string[] {
  const sent = [recorded.request, ...(recorded.events ?? []).map((event) => event.send)];
  return sent
    .flatMap((message) => [message?.model_name, message?.name])
    .filter((name) => typeof name === "string");
}

/** Replaces the short form of large byte fields by their base64. */
export function expandFills(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(expandFills);
  if (typeof value !== "object" || value === null) return value;
  const fill = (value as { $fill?: { byte: number; count: number } }).$fill;
  if (fill !== undefined) return Buffer.alloc(fill.count, fill.byte).toString("base64");
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, expandFills(entry)]));
}
