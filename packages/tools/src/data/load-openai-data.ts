import { readFile } from "node:fs/promises";
import type { OpenAiDataSet } from "./data-set.js";
import { invalidOption } from "./invalid-option.js";
import { timestampOf } from "./json-steps.js";
import { SessionReader } from "./sessions.js";
import { textOf } from "./tensor-reader.js";

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
