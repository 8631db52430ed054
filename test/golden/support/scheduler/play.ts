import { basename, join } from "node:path";
import { Triton, TritonError } from "@tritonjs/core";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock, withSchedulerDelay } from "@tritonjs/testing";
import { identity, toInferFunc } from "../behaviours/behaviour.js";
import { OnnxGraph } from "../behaviours/onnx-graph.js";
import { ExecutionLog, Recorder } from "../behaviours/recorder.js";
import { cacheOf } from "../cache-of.js";
import { type ParsedConfig, parseConfigText } from "../config-text.js";
import { rateLimitOf } from "../rate-limit-of.js";
import { RepositoryFolder } from "../repository-folder.js";
import { type Arrival, Client } from "./client.js";
import type { Outcome, Scenario } from "./scenario.js";
import { statisticsRecord } from "./statistics-record.js";

/** Answers closer together than this arrive as one group. */
const GROUP_GAP_MS = 12;

/** Longest wait in a scenario after its last action. */
const LAST_WAIT_MS = 12_000;

/** Step of the clock while a model may run in real time. */
const GRAPH_STEP_MS = 10;

/** Step of the clock while a model loads. */
const LOAD_STEP_MS = 10;

type AnyHandle = ReturnType<typeof bindModel>;

/** Plays a scenario on a virtual clock and returns its outcome. */
export async function play(scenario: Scenario): Promise<Outcome> {
  const folder = await warmupFolder(scenario);
  return playIn(folder.path, scenario).finally(() => folder.remove());
}

async function playIn(folder: string, scenario: Scenario): Promise<Outcome> {
  const clock = new VirtualClock();
  const { TRITONSERVER_DELAY_SCHEDULER: held, TRITONSERVER_BACKLOG_DELAY_SCHEDULER: heldBacklog } =
    scenario.env;
  const delay = { requests: Number(held ?? 0), backlog: Number(heldBacklog ?? 0) };
  const triton = withSchedulerDelay(
    delay,
    () =>
      new Triton({
        clock,
        responseCache: cacheOf(scenario.server_flags),
        ...rateLimitOf(scenario.server_flags),
      }),
  );
  const log = new ExecutionLog(clock);
  const graph = graphOf(scenario);
  const served: { handle: AnyHandle; readonly bind: () => AnyHandle }[] = [];
  for (const model of modelsOf(scenario, folder)) {
    const isRecorder = scenario.model_behaviour.startsWith("recorder");
    const name = scenario.extra_models && model.name;
    const { inferFunc } = isRecorder
      ? new Recorder(model.config, clock, log, name)
      : (graph ?? identityModel(model));
    const bind = () => bindModel(triton, model, inferFunc, stateFilesOf(scenario));
    const handle = bind();
    served.push({ handle, bind });
    await load(handle, clock);
  }
  const loadExecutions = log.take();
  const started = clock.now();
  const client = new Client(triton, scenario.id, clock);
  for (const action of scenario.actions) {
    await pass(clock, started + action.at_ms, graph);
    if (action.do === "unload") for (const { handle } of served) void handle.unbind();
    else if (action.do === "load") for (const one of served) one.handle = one.bind();
    else client.act(action);
  }
  await pass(clock, clock.now() + LAST_WAIT_MS, graph);
  const reports = modelsOf(scenario, folder).map(({ name }) => serviceOf(triton).statistics(name, "")[0]);
  const records = reports.map((report) => [report?.name, statisticsRecord(report)]);
  const outcome: Outcome = {
    ...(loadExecutions.length > 0 ? { load_executions: loadExecutions } : {}),
    executions: log.executions,
    executions_by_instance: log.byInstance,
    responses: client.responses,
    arrival_order: groups(client.arrivals),
    statistics: scenario.extra_models ? Object.fromEntries(records) : records[0]?.[1],
  };
  await triton.close();
  return outcome;
}

/** Moves the clock to a time; in small steps where a model runs in real time, which the clock then waits for. */
async function pass(clock: VirtualClock, until: number, graph: OnnxGraph | undefined): Promise<void> {
  await graph?.settle(clock);
  while (graph !== undefined && until - clock.now() > GRAPH_STEP_MS) {
    await clock.advance(GRAPH_STEP_MS);
    await graph.settle(clock);
  }
  await clock.advance(until - clock.now());
  await graph?.settle(clock);
}

/** The ONNX graph of a scenario's model. */
function graphOf({ id, config_pbtxt: text, files = {} }: Scenario): OnnxGraph | undefined {
  const graph = files["1/model.onnx"];
  return graph === undefined ? undefined : new OnnxGraph(graph, parseConfigText(text, id));
}

/** The files with initial states, by name. */
function stateFilesOf({ files = {} }: Scenario): Record<string, Uint8Array> {
  const paths = Object.keys(files).filter((path) => path.startsWith("initial_state/"));
  return Object.fromEntries(paths.map((path) => [basename(path), Buffer.from(files[path]!, "hex")]));
}

/** A repository whose only files are those of warm-up inputs. */
function warmupFolder({ id, files = {} }: Scenario): Promise<RepositoryFolder> {
  const paths = Object.keys(files).filter((path) => path.startsWith("warmup/"));
  return RepositoryFolder.create(
    Object.fromEntries(paths.map((path) => [`${id}/${path}`, Buffer.from(files[path]!, "hex")])),
  );
}

/** A model of a scenario. */
interface ScenarioModel {
  readonly name: string;
  readonly config: ParsedConfig;
}

/** The models of a scenario, members before their ensemble. */
function modelsOf(scenario: Scenario, folder: string): ScenarioModel[] {
  const texts = [
    ...Object.entries(scenario.extra_models ?? {}),
    [scenario.id, scenario.config_pbtxt] as const,
  ];
  const models = texts.map(([name, text]) => ({
    name,
    config: withWarmupFiles(parseConfigText(text, name), join(folder, name, "warmup")),
  }));
  const isEnsemble = ({ config }: ScenarioModel) => config.ensembleScheduling !== undefined;
  return [...models.filter((model) => !isEnsemble(model)), ...models.filter(isEnsemble)];
}

function bindModel(
  triton: Triton,
  { name: modelName, config: modelConfig }: ScenarioModel,
  inferFunc: unknown,
  stateFiles?: Readonly<Record<string, Uint8Array>>,
) {
  return modelConfig.ensembleScheduling === undefined
    ? triton.bind({ modelName, inferFunc: inferFunc as never, modelConfig, stateFiles })
    : triton.bindEnsemble({ modelName, modelConfig });
}

/** Lets the warm-up of a model run on the scenario's clock. Rejects when the model does not load. */
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

/** The configuration with the paths of the written warm-up inputs. */
function withWarmupFiles(config: ParsedConfig, folder: string): ParsedConfig {
  const modelWarmup = config.modelWarmup?.map((sample) => ({
    ...sample,
    inputs: Object.fromEntries(
      Object.entries(sample.inputs).map(([name, input]) => [
        name,
        input.inputDataFile ? { ...input, inputDataFile: join(folder, input.inputDataFile) } : input,
      ]),
    ),
  }));
  return modelWarmup === undefined ? config : { ...config, modelWarmup };
}

/** Reason why the model of a scenario cannot be bound or loaded; `undefined` when it can. */
export async function refusalOf(scenario: Scenario): Promise<string | undefined> {
  const clock = new VirtualClock();
  const folder = await warmupFolder(scenario);
  const triton = new Triton({ clock, ...rateLimitOf(scenario.server_flags) });
  try {
    for (const model of modelsOf(scenario, folder.path)) {
      await load(bindModel(triton, model, identityModel(model).inferFunc, stateFilesOf(scenario)), clock);
    }
  } catch (error) {
    return TritonError.from(error).message.replaceAll(folder.path, "<REPO>");
  } finally {
    await triton.close();
    await folder.remove();
  }
  return undefined;
}

function identityModel({ config: { input = [], output = [] } }: ScenarioModel) {
  const inferFunc = toInferFunc(identity, {
    version: 1,
    inputNames: input.map(({ name }) => name),
    outputNames: output.map(({ name }) => name),
    sleep: async () => {},
  });
  return { inferFunc };
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
