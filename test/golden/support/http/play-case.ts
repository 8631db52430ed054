import { setTimeout as sleep } from "node:timers/promises";
import { compareRefusal, needsToken, withToken } from "./access.js";
import { type Address, exchange } from "./exchange.js";
import { type HttpCase, type RecordedRequest, type Step, stepsOf } from "./http-case.js";
import type { HttpResponse } from "./parse-response.js";
import { HttpObjects } from "./shared-memory-objects.js";

/** Addresses of the servers of the HTTP cases. */
export interface Addresses {
  readonly http: Address;
  readonly metrics: Address;
}

/** The outcome of a case. */
export interface PlayedCase {
  /** In the order of the steps. */
  readonly answers: readonly (HttpResponse | undefined)[];
  /** Faults independent of the recording: a restricted group that answers without the access token. */
  readonly faults: readonly string[];
}

/** Plays the client's side of a recorded case. Restricted groups are first called without the access token. */
export async function playHttpCase(addresses: Addresses, recorded: HttpCase): Promise<PlayedCase> {
  if (!recorded.area.startsWith("shm")) return playSteps(addresses, recorded);
  const objects = new HttpObjects();
  await objects.fill();
  try {
    return await playSteps(addresses, recorded, objects);
  } finally {
    objects.destroy();
  }
}

async function playSteps(
  addresses: Addresses,
  recorded: HttpCase,
  objects?: HttpObjects,
): Promise<PlayedCase> {
  const steps = stepsOf(recorded);
  const faults: string[] = [];
  const send = async (request: RecordedRequest) => {
    const address = request.port === "metrics" ? addresses.metrics : addresses.http;
    const answer = await exchange(address, objects?.toSend(request) ?? request);
    return objects === undefined ? answer : objects.asRecorded(answer);
  };
  const play = async ({ request, ...step }: Step) => {
    await sleep(step.start_ms ?? step.wait_ms_before ?? 0);
    if (!needsToken(recorded, request)) return send(request);
    const routed = ![404, 405].includes(step.response.status ?? 0);
    if (routed) faults.push(...compareRefusal(request, await send(request)));
    return send(withToken(request));
  };
  if (steps.some((step) => step.start_ms !== undefined)) {
    return { answers: await Promise.all(steps.map(play)), faults };
  }
  const answers: (HttpResponse | undefined)[] = [];
  for (const step of steps) answers.push(await play(step));
  return { answers, faults };
}
