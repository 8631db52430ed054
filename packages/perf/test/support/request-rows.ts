import type { GeneratorUsage, LoadWindow, RequestRecords } from "../../src/load/request-records.js";

/** A finished request as a test writes it. Times are milliseconds. */
export interface RequestRow {
  readonly scheduled?: number;
  readonly sent: number;
  readonly sendEnd?: number;
  /** Absent for the end; NaN for none. */
  readonly firstResponse?: number;
  readonly end: number;
  readonly responses?: number;
  readonly error?: string;
  readonly sequence?: number;
  /** Times of single responses. */
  readonly times?: readonly number[];
  readonly tokens?: readonly number[];
  readonly outputs?: readonly string[];
  readonly payload?: number;
}

export const IDLE_USAGE: GeneratorUsage = {
  cpuMs: 0,
  cpuUtilization: 0,
  eventLoopUtilization: 0,
  delayed: 0,
  idle: 1,
  bytesSent: 0,
  bytesReceived: 0,
};

/** Records of requests in columns, as a generator makes them. */
export function recordsOf(rows: readonly RequestRow[]): RequestRecords {
  const errors = [...new Set(rows.flatMap(({ error }) => error ?? []))];
  const offsets = [0];
  for (const { times = [] } of rows) offsets.push(offsets.at(-1)! + times.length);
  const keeps = rows.some(({ times }) => times !== undefined);
  const tokens = rows.flatMap((row) => row.tokens ?? []);
  const outputs = rows.flatMap((row) => row.outputs ?? []);
  return {
    count: rows.length,
    scheduled: Float64Array.from(rows, (row) => row.scheduled ?? row.sent),
    sent: Float64Array.from(rows, (row) => row.sent),
    sendEnd: Float64Array.from(rows, (row) => row.sendEnd ?? row.sent),
    firstResponse: Float64Array.from(rows, (row) => row.firstResponse ?? row.times?.[0] ?? row.end),
    end: Float64Array.from(rows, (row) => row.end),
    responses: Uint32Array.from(rows, (row) => row.responses ?? row.times?.length ?? (row.error ? 0 : 1)),
    failure: Uint16Array.from(rows, ({ error }) => (error === undefined ? 0 : errors.indexOf(error) + 1)),
    errors,
    sequence: Float64Array.from(rows, (row) => row.sequence ?? 0),
    payload: Uint32Array.from(rows, (row) => row.payload ?? 0),
    ...(keeps && {
      kept: {
        offsets: Uint32Array.from(offsets),
        times: Float64Array.from(rows.flatMap((row) => row.times ?? [])),
        ...(tokens.length > 0 && { tokens: Uint32Array.from(tokens) }),
        ...(outputs.length > 0 && { outputs }),
      },
    }),
  };
}

/** A window of these requests. */
export function windowOf(
  start: number,
  end: number,
  rows: readonly RequestRow[],
  usage: Partial<GeneratorUsage> = {},
): LoadWindow {
  return { start, end, records: recordsOf(rows), usage: { ...IDLE_USAGE, ...usage } };
}
