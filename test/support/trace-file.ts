import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** One request of a trace file, with all of its entries. */
export interface TracedRequest {
  readonly id: number;
  readonly parentId: number | undefined;
  readonly model: string | undefined;
  readonly requestId: string | undefined;
  /** Names of the events in the order of writing, and their times in nanoseconds. */
  readonly timestamps: (readonly [name: string, ns: number])[];
  readonly tensors: { readonly activity: string; readonly name: string; readonly data: string }[];
  readonly batches: object[];
  /** Why it was late. */
  readonly late: string | undefined;
}

interface Entry {
  readonly id: number;
  readonly model_name?: string;
  readonly request_id?: string;
  readonly parent_id?: number;
  readonly timestamps?: readonly { readonly name: string; readonly ns: number }[];
  readonly activity?: string;
  readonly tensor?: { readonly name: string; readonly data: string };
  readonly batch?: object;
  readonly late?: string;
}

/** A path for traces in a folder that is removed with the test. */
export function traceFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-trace-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "trace.json");
}

/** The requests of a trace file, in the order of their numbers. */
export function readTraces(file: string): TracedRequest[] {
  const entries: Entry[] = JSON.parse(readFileSync(file, "utf8"));
  const ids = [...new Set(entries.map(({ id }) => id))].sort((a, b) => a - b);
  return ids.map((id) => {
    const own = entries.filter((entry) => entry.id === id);
    const named = own.find(({ model_name }) => model_name !== undefined);
    return {
      id,
      parentId: named?.parent_id,
      model: named?.model_name,
      requestId: named?.request_id,
      timestamps: own.flatMap(({ timestamps = [] }) => timestamps.map(({ name, ns }) => [name, ns] as const)),
      tensors: own.flatMap(({ activity = "", tensor }) =>
        tensor === undefined ? [] : [{ activity, name: tensor.name, data: tensor.data }],
      ),
      batches: own.flatMap(({ batch }) => (batch === undefined ? [] : [batch])),
      late: own.find(({ late }) => late !== undefined)?.late,
    };
  });
}

/** The names of the events, in order of time. */
export function namesOf({ timestamps }: TracedRequest): string[] {
  return [...timestamps].sort(([, a], [, b]) => a - b).map(([name]) => name);
}
