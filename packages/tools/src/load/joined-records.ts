import type { KeptResponses, RequestRecords } from "./request-records.js";

type Column = Float64Array | Uint32Array | Uint16Array;

/** The records of several threads, one thread after the other. */
export function joinedRecords(parts: readonly RequestRecords[]): RequestRecords {
  if (parts.length === 1) return parts[0]!;
  const errors = [...new Set(parts.flatMap((part) => part.errors))];
  const of = <T extends Column>(column: (part: RequestRecords) => T): T => joined(parts.map(column));
  return {
    count: parts.reduce((sum, part) => sum + part.count, 0),
    scheduled: of((part) => part.scheduled),
    sent: of((part) => part.sent),
    sendEnd: of((part) => part.sendEnd),
    firstResponse: of((part) => part.firstResponse),
    end: of((part) => part.end),
    responses: of((part) => part.responses),
    failure: of((part) =>
      part.failure.map((failure) => (failure === 0 ? 0 : 1 + errors.indexOf(part.errors[failure - 1]!))),
    ),
    errors,
    sequence: of((part) => part.sequence),
    payload: of((part) => part.payload),
    kept: joinedResponses(parts.flatMap(({ kept }) => kept ?? [])),
  };
}

function joinedResponses(parts: readonly KeptResponses[]): KeptResponses | undefined {
  const [first] = parts;
  if (first === undefined) return undefined;
  const offsets = new Uint32Array(parts.reduce((sum, part) => sum + part.offsets.length - 1, 1));
  let requests = 0;
  let responses = 0;
  for (const part of parts) {
    for (let i = 0; i < part.offsets.length; i++) offsets[requests + i] = responses + part.offsets[i]!;
    requests += part.offsets.length - 1;
    responses += part.times.length;
  }
  return {
    offsets,
    times: joined(parts.map((part) => part.times)),
    tokens: first.tokens && joined(parts.map((part) => part.tokens!)),
    inputTokens: first.inputTokens && joined(parts.map((part) => part.inputTokens!)),
    outputs: first.outputs && parts.flatMap((part) => part.outputs!),
  };
}

function joined<T extends Column>(columns: readonly T[]): T {
  const length = columns.reduce((sum, column) => sum + column.length, 0);
  const whole = new (columns[0]!.constructor as new (length: number) => T)(length);
  let at = 0;
  for (const column of columns) {
    whole.set(column, at);
    at += column.length;
  }
  return whole;
}
