import { setTimeout as sleep } from "node:timers/promises";
import type { Models } from "../served-models.js";
import { arrangementOf } from "./arrangement.js";
import { compareResponse, isNewerAnswer } from "./compare-response.js";
import { type Address, exchange } from "./exchange.js";
import { type HttpCase, type Step, stepsOf } from "./http-case.js";
import type { HttpResponse } from "./parse-response.js";
import { HttpObjects } from "./shared-memory-objects.js";

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
  if (!recorded.area.startsWith("shm")) return playSteps(addresses, recorded, models);
  const objects = new HttpObjects();
  await objects.fill();
  try {
    return await playSteps(addresses, recorded, models, objects);
  } finally {
    objects.destroy();
  }
}

async function playSteps(
  addresses: Addresses,
  recorded: HttpCase,
  models: Models,
  objects?: HttpObjects,
): Promise<string[]> {
  const steps = stepsOf(recorded);
  const together = steps.some((step) => step.start_ms !== undefined);
  const play = async (step: Step, index: number): Promise<string[]> => {
    await sleep(step.start_ms ?? step.wait_ms_before ?? 0);
    const address = step.request.port === "metrics" ? addresses.metrics : addresses.http;
    const answer = await exchange(address, objects?.toSend(step.request) ?? step.request);
    const got = objects === undefined ? answer : objects.asRecorded(answer);
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
  if (isNewerAnswer(recorded.newer, got)) return [];
  const found = compareResponse(expected, got, arrangementOf(recorded, models));
  return found.length > 0 && recorded.quirk !== undefined ? checkSane(got) : found;
}

/** The recorded server is wrong here: anything will do that a sound server may answer. */
function checkSane(got: HttpResponse | undefined): string[] {
  if (got === undefined) return ["no answer"];
  const sound = got.status === 200 || (got.status !== 500 && got.body.includes('"error"'));
  return sound ? [] : [`status: expected an answer or a refusal, got ${got.status} ${got.body}`];
}
