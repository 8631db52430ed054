import { setTimeout as sleep } from "node:timers/promises";
import type { JsonValue } from "../json-value.js";
import { isServed, type Models } from "../served-models.js";
import { compareResponse, errorText, isNewerAnswer } from "./compare-response.js";
import { type Address, exchange } from "./exchange.js";
import { type HttpCase, type Step, stepsOf } from "./http-case.js";
import type { HttpResponse } from "./parse-response.js";

/** Where the servers of the HTTP cases listen. */
export interface Addresses {
  readonly http: Address;
  readonly metrics: Address;
}

/** Replays a recorded case and tells how the answers differ. */
export async function compareHttpCase(
  addresses: Addresses,
  recorded: HttpCase,
  models: Models,
): Promise<string[]> {
  const steps = stepsOf(recorded);
  const together = steps.some((step) => step.start_ms !== undefined);
  const play = async (step: Step, index: number): Promise<string[]> => {
    await sleep(step.start_ms ?? step.wait_ms_before ?? 0);
    const address = step.request.port === "metrics" ? addresses.metrics : addresses.http;
    const got = await exchange(address, step.request);
    const found = compareStep(recorded, step, got, models);
    return steps.length === 1 ? found : found.map((difference) => `step ${index}: ${difference}`);
  };
  if (together) return (await Promise.all(steps.map(play))).flat();
  const differences: string[] = [];
  for (const [index, step] of steps.entries()) differences.push(...(await play(step, index)));
  return differences;
}

function compareStep(
  recorded: HttpCase,
  { response: expected }: Step,
  got: HttpResponse | undefined,
  models: Models,
): string[] {
  if (recorded.quirk !== undefined) return checkSane(got);
  if (isNewerAnswer(recorded.newer, got)) return [];
  return compareResponse(expected, got, (body) => arrange(body, recorded, models));
}

/** The recorded server is wrong here: anything will do that a sound server may answer. */
function checkSane(got: HttpResponse | undefined): string[] {
  if (got === undefined) return ["no answer"];
  const sound = got.status === 200 || (got.status < 500 && errorText(got) !== undefined);
  return sound ? [] : [`status: expected an answer or a refusal, got ${got.status} ${got.body}`];
}

/** Levels out what is not part of the protocol: see each rule. */
function arrange(body: JsonValue, recorded: HttpCase, models: Models): JsonValue {
  if (Array.isArray(body)) return body.filter((row) => isListed(row, models));
  if (!(body instanceof Map)) return body;
  const arranged = new Map(body);
  const stats = arranged.get("model_stats");
  if (Array.isArray(stats) && /\/models\/stats$/.test(recorded.request?.path ?? "")) {
    arranged.set("model_stats", namesOnly(stats, models));
  }
  dropExampleParameters(arranged);
  if (recorded.unordered !== undefined) levelOrder(arranged);
  return arranged;
}

/** Lists of all models leave out those that are not served. */
function isListed(row: JsonValue, models: Models): boolean {
  const name = row instanceof Map ? row.get("name") : undefined;
  const model = typeof name === "string" ? models.get(name) : undefined;
  return model === undefined || isServed(model);
}

/** The recordings keep names and versions of the statistics of all models. */
function namesOnly(stats: JsonValue[], models: Models): JsonValue[] {
  const rows = stats.filter(
    (row): row is Map<string, JsonValue> => row instanceof Map && isListed(row, models),
  );
  return rows.map((row) => new Map(["name", "version"].map((key) => [key, row.get(key) ?? null])));
}

/** The recorded identity backend adds four example parameters to every response. */
function dropExampleParameters(body: Map<string, JsonValue>): void {
  const parameters = body.get("parameters");
  if (!(parameters instanceof Map)) return;
  const kept = [...parameters].filter(([key]) => !/^param[0-3]$/.test(key));
  if (kept.length === 0) body.delete("parameters");
  else body.set("parameters", new Map(kept));
}

/** Which of two inputs a text names, and the order of equal classes, are those of a hash map. */
function levelOrder(body: Map<string, JsonValue>): void {
  const error = body.get("error");
  if (typeof error === "string") body.set("error", error.replace(/'INPUT\d'/g, "'INPUT'"));
  for (const output of (body.get("outputs") as Map<string, JsonValue>[] | undefined) ?? []) {
    const data = output.get("data");
    if (Array.isArray(data)) output.set("data", data.map(String).sort());
  }
}
