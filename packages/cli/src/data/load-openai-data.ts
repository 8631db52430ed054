import { readFile } from "node:fs/promises";
import { invalidOption } from "../tool-errors.js";
import type { OpenAiDataSet, Session, SessionTurn } from "./data-set.js";
import { textOf, timestampOf } from "./json-steps.js";

/**
 * Reads the bodies of OpenAI requests: `{"data": [{"payload": [{…}]}]}`, as perf_analyzer does.
 *
 * @param options `fixedSchedule`: each entry has a `timestamp`; `sessions`: each entry has a `session_id`
 * @throws TritonError INVALID_ARG that names the file and the entry.
 */
export async function loadOpenAiData(
  paths: readonly string[],
  {
    fixedSchedule = false,
    sessions = false,
  }: { readonly fixedSchedule?: boolean; readonly sessions?: boolean } = {},
): Promise<OpenAiDataSet> {
  const payloads: string[] = [];
  const timestampsMs: number[] = [];
  const reader = sessions ? new SessionReader() : undefined;
  for (const path of paths) {
    const { data } = parsed(await textOfFile(path), path);
    if (!Array.isArray(data)) throw invalidOption(`${path}: expected a list "data", got ${textOf(data)}`);
    // Entries in lists are those of one conversation, one after the other.
    data.flat().forEach((entry: unknown, i) => {
      const where = `${path}: data[${i}]`;
      const { payload, timestamp } = (entry ?? {}) as Record<string, unknown>;
      const bodies = Array.isArray(payload) ? payload : [payload];
      for (const body of bodies) {
        if (typeof body !== "object" || body === null || Array.isArray(body))
          throw invalidOption(
            `${where}: "payload": expected the body of a request in a list, got ${textOf(payload)}`,
          );
        reader?.add(entry as Record<string, unknown>, payloads.length, where);
        payloads.push(JSON.stringify(body));
        if (fixedSchedule) timestampsMs.push(timestampOf(timestamp, where));
      }
    });
  }
  if (payloads.length === 0)
    throw invalidOption(
      `--input-data: expected files with payloads of OpenAI requests, got ${paths.join(", ") || "none"}`,
    );
  return {
    kind: "openai",
    payloads,
    batchSize: 1,
    timestampsMs: fixedSchedule ? timestampsMs : undefined,
    ...(reader !== undefined && { sessions: reader.sessions }),
  };
}

async function textOfFile(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw invalidOption(
      `--input-data: expected a file, cannot read '${path}': ${(cause as Error).message}`,
      cause,
    );
  }
}

function parsed(text: string, path: string): { readonly data?: unknown } {
  try {
    return (JSON.parse(text) ?? {}) as { readonly data?: unknown };
  } catch (cause) {
    throw invalidOption(`${path}: expected JSON: ${(cause as Error).message}`, cause);
  }
}

/** Collects the turns of sessions. */
class SessionReader {
  readonly #turns = new Map<string, SessionTurn[]>();

  /** The sessions in the order of their first turns. */
  get sessions(): Session[] {
    return [...this.#turns].map(([id, turns]) => ({ id, turns }));
  }

  /**
   * Adds an entry of the data: `{"session_id": ["a"], "delay": [100], …}`.
   *
   * @param where the entry, for errors
   * @throws TritonError INVALID_ARG that names the entry
   */
  add(entry: Readonly<Record<string, unknown>>, payload: number, where: string): void {
    const id = only(entry.session_id);
    if (typeof id !== "string" || id === "")
      throw invalidOption(
        `${where}: "session_id": expected the name of a session in a list, got ${textOf(entry.session_id)}`,
      );
    const delayMs = only(entry.delay) ?? 0;
    if (typeof delayMs !== "number" || !Number.isFinite(delayMs) || delayMs < 0)
      throw invalidOption(`${where}: "delay": expected milliseconds in a list, got ${textOf(entry.delay)}`);
    const turns = this.#turns.get(id) ?? [];
    turns.push({ payload, delayMs });
    this.#turns.set(id, turns);
  }
}

/** The value of a list of one. */
const only = (value: unknown): unknown => (Array.isArray(value) && value.length === 1 ? value[0] : value);
