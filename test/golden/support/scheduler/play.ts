import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Triton, TritonError, VirtualClock } from "@tritonjs/core";
import { identity, toInferFunc } from "../behaviours/behaviour.js";
import { Recorder } from "../behaviours/recorder.js";
import { cacheOf } from "../cache-of.js";
import { type ParsedConfig, parseConfigText } from "../config-text.js";
import { type Arrival, Client } from "./client.js";
import type { Outcome, Scenario } from "./scenario.js";
import { statisticsRecord } from "./statistics-record.js";

/** Answers closer together than this arrive as one group. */
const GROUP_GAP_MS = 12;

/** Longest that anything in a scenario waits after its last action. */
const LAST_WAIT_MS = 12_000;

/** Step of the clock while a model loads. */
const LOAD_STEP_MS = 10;

/** Plays a scenario on a virtual clock and tells what came of it. */
export async function play(scenario: Scenario): Promise<Outcome> {
  const clock = new VirtualClock();
  const held = scenario.env.TRITONSERVER_DELAY_SCHEDULER;
  const triton = new Triton({
    clock,
    delayScheduler: Number(held ?? 0),
    responseCache: cacheOf(scenario.server_flags),
  });
  const config = parseConfigText(scenario.config_pbtxt, scenario.id);
  const recorder = new Recorder(config, clock);
  const inferFunc = scenario.model_behaviour === "recorder" ? recorder.inferFunc : identityFunc(config);
  const modelConfig = withWarmupFiles(scenario, config);
  const handle = triton.bind({ modelName: scenario.id, inferFunc: inferFunc as never, modelConfig });
  await load(handle, clock);
  const loadExecutions = recorder.takeExecutions();
  const started = clock.now();
  const client = new Client(triton, scenario.id, clock);
  for (const action of scenario.actions) {
    await clock.advance(started + action.at_ms - clock.now());
    client.act(action);
  }
  await clock.advance(LAST_WAIT_MS);
  const [report] = triton.service.statistics(scenario.id, "");
  const outcome: Outcome = {
    ...(loadExecutions.length > 0 ? { load_executions: loadExecutions } : {}),
    executions: recorder.executions,
    responses: client.responses,
    arrival_order: groups(client.arrivals),
    statistics: statisticsRecord(report),
  };
  await triton.close();
  return outcome;
}

/** Lets the warmup of a model run on the scenario's clock. Rejects when the model does not load. */
async function load(handle: { ready(): Promise<void> }, clock: VirtualClock): Promise<void> {
  let over = false;
  const ready = handle.ready().finally(() => {
    over = true;
  });
  ready.catch(() => {});
  await clock.settle();
  while (!over) await clock.advance(LOAD_STEP_MS);
  await ready;
}

/** The configuration with the files of warmup inputs where they have been written. */
function withWarmupFiles({ files = {} }: Scenario, config: ParsedConfig): ParsedConfig {
  if (!config.modelWarmup?.some(({ inputs }) => Object.values(inputs).some((input) => input.inputDataFile))) {
    return config;
  }
  const folder = join(mkdtempSync(join(tmpdir(), "tritonjs-golden-")), "warmup");
  mkdirSync(folder);
  for (const [path, hex] of Object.entries(files)) {
    if (path.startsWith("warmup/")) writeFileSync(join(folder, basename(path)), Buffer.from(hex, "hex"));
  }
  const placed = config.modelWarmup.map((sample) => ({
    ...sample,
    inputs: Object.fromEntries(
      Object.entries(sample.inputs).map(([name, input]) => [
        name,
        input.inputDataFile ? { ...input, inputDataFile: join(folder, input.inputDataFile) } : input,
      ]),
    ),
  }));
  return { ...config, modelWarmup: placed };
}

/** Why the model of a scenario cannot be bound or loaded; `undefined` when it can. */
export async function refusalOf(scenario: Scenario): Promise<string | undefined> {
  const clock = new VirtualClock();
  const triton = new Triton({ clock });
  const config = withWarmupFiles(scenario, parseConfigText(scenario.config_pbtxt, scenario.id));
  try {
    await load(
      triton.bind({ modelName: scenario.id, inferFunc: identityFunc(config) as never, modelConfig: config }),
      clock,
    );
  } catch (error) {
    return TritonError.from(error).message;
  } finally {
    await triton.close();
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
