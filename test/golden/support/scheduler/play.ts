import { Triton, TritonError, VirtualClock } from "@tritonjs/core";
import { identity, toInferFunc } from "../behaviours/behaviour.js";
import { Recorder } from "../behaviours/recorder.js";
import { type ParsedConfig, parseConfigText } from "../config-text.js";
import { type Arrival, Client } from "./client.js";
import type { Outcome, Scenario } from "./scenario.js";
import { statisticsRecord } from "./statistics-record.js";

/** Answers closer together than this arrive as one group. */
const GROUP_GAP_MS = 12;

/** Longest that anything in a scenario waits after its last action. */
const LAST_WAIT_MS = 12_000;

/** Plays a scenario on a virtual clock and tells what came of it. */
export async function play(scenario: Scenario): Promise<Outcome> {
  const clock = new VirtualClock();
  const held = scenario.env.TRITONSERVER_DELAY_SCHEDULER;
  const triton = new Triton({ clock, delayScheduler: Number(held ?? 0) });
  const config = parseConfigText(scenario.config_pbtxt, scenario.id);
  const recorder = new Recorder(config, clock);
  const inferFunc = scenario.model_behaviour === "recorder" ? recorder.inferFunc : identityFunc(config);
  triton.bind({ modelName: scenario.id, inferFunc: inferFunc as never, modelConfig: config });
  await clock.settle();
  const started = clock.now();
  const client = new Client(triton, scenario.id, clock);
  for (const action of scenario.actions) {
    await clock.advance(started + action.at_ms - clock.now());
    client.act(action);
  }
  await clock.advance(LAST_WAIT_MS);
  const [report] = triton.service.statistics(scenario.id, "");
  const outcome: Outcome = {
    executions: recorder.executions,
    responses: client.responses,
    arrival_order: groups(client.arrivals),
    statistics: statisticsRecord(report),
  };
  await triton.close();
  return outcome;
}

/** Why the model of a scenario cannot be bound; `undefined` when it can. */
export function refusalOf({ id, config_pbtxt: text }: Scenario): string | undefined {
  const config = parseConfigText(text, id);
  try {
    new Triton().bind({ modelName: id, inferFunc: identityFunc(config) as never, modelConfig: config });
  } catch (error) {
    return TritonError.from(error).message;
  }
  return undefined;
}

function identityFunc({ input = [], output = [] }: ParsedConfig) {
  return toInferFunc(identity, {
    version: 1,
    inputNames: input.map(({ name }) => name),
    outputNames: output.map(({ name }) => name),
    sleep: async () => {},
  });
}

function groups(arrivals: readonly Arrival[]): string[][] {
  const grouped: string[][] = [];
  let last = Number.NEGATIVE_INFINITY;
  for (const { id, at } of arrivals) {
    if (at - last > GROUP_GAP_MS) grouped.push([]);
    grouped.at(-1)?.push(id);
    last = at;
  }
  return grouped.map((group) => group.sort());
}
