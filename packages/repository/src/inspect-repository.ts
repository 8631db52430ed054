import { basename, join } from "node:path";
import {
  type Extension,
  type Gpus,
  Log,
  type ModelPlan,
  membersProblems,
  NO_GPUS,
  realClock,
  validateModelIo,
} from "@tritonjs/core/extension";
import { dataFilesOf, exists, readSmallFile } from "@tritonjs/core/internal";
import { assertInside } from "@tritonjs/core/internal/worker";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { fieldProblems } from "./config/field-support.js";
import { parsePrototxt } from "./config/prototxt.js";
import { contents, readVersionDirectories, subdirectories } from "./directories/model-directory.js";
import type { RepositorySource } from "./directories/repository-source.js";
import { openSources } from "./directories/repository-source.js";
import { Dependencies, keyOf, type ModelKey } from "./loading/dependencies.js";
import { type PlanServer, planVersion } from "./loading/plan-version.js";
import { configPathOf, type PolledModel, pollModel, selectVersions } from "./loading/poll-model.js";
import type { RepositoryOptions } from "./repository-options.js";

const QUIET = new Log({ error() {}, warn() {}, info() {}, debug() {} });

/** The server's options for the repositories, with the same meaning as in `new Triton()`. */
export type InspectOptions = Pick<
  RepositoryOptions,
  | "modelConfigName"
  | "disableAutoCompleteConfig"
  | "backendConfig"
  | "backends"
  | "backendDirectory"
  | "modelFormats"
  | "repositoryAgentDirectory"
> & {
  /** GPUs that instance groups may name: `machineGpus()` of `@tritonjs/backends/gpu`. @default none */
  readonly gpus?: Gpus;
  /** Extensions whose parameters configurations may have, which check them. @default none */
  readonly extensions?: readonly Extension[];
};

/** The result of inspecting one model. */
export interface ModelInspection {
  readonly name: string;
  readonly directory: string;
  /** The completed configuration; undefined when no version can be served. */
  readonly config: ModelConfig | undefined;
  /** Names of classes by output, from the model's label files. Undefined for a model that was not read so far. */
  readonly labels?: ReadonlyMap<string, readonly string[]>;
  readonly findings: readonly Finding[];
}

/**
 * Inspects the models of repositories without starting them. It checks configurations, layout, dependencies of
 * ensembles, and the descriptions in model files, as loading would. It reports all faults of a model at once.
 *
 * @param models names of the models to inspect, without the members of ensembles among them; all by default
 * @throws TritonError INTERNAL for a repository that does not exist, INVALID_ARG for a path that is not a directory.
 *
 * @example
 * ```ts
 * for (const { name, findings } of await inspectRepository(["./models"])) {
 *   for (const { severity, message } of findings) console.log(name, severity, message);
 * }
 * ```
 */
export async function inspectRepository(
  repositories: readonly string[],
  options: InspectOptions = {},
  models?: readonly string[],
): Promise<ModelInspection[]> {
  const { gpus = NO_GPUS } = options;
  const sources = openSources(repositories, realClock, QUIET);
  try {
    const inspected: InspectedModel[] = [];
    const shownPaths = new Map<InspectedModel, string>();
    for (const source of sources) {
      await source.check();
      await source.refresh(models);
      for (const name of await namesIn(source, models)) {
        const model = await inspectIn(source, name, options, gpus);
        inspected.push(model);
        shownPaths.set(model, source.isRemote ? `${source.path}/${name}` : model.directory);
      }
    }
    noteDoubles(inspected);
    if (models === undefined) inspectEnsembles(inspected);
    return inspected.map((model) => inspectionOf(model, shownPaths.get(model)!));
  } finally {
    await Promise.all(sources.map((source) => source.close()));
  }
}

async function namesIn(source: RepositorySource, models: readonly string[] | undefined): Promise<string[]> {
  if (models === undefined) return [...(await source.names())];
  if (!source.isRemote) return (await source.names()).filter((name) => models.includes(name));
  const found = await Promise.all(models.map(async (name) => ((await source.has(name)) ? [name] : [])));
  return found.flat();
}

async function inspectIn(
  source: RepositorySource,
  name: string,
  options: InspectOptions,
  gpus: Gpus,
): Promise<InspectedModel> {
  try {
    const { root } = await source.open(name);
    return await inspectModel(root, name, options, gpus);
  } catch (error) {
    const findings = new Findings();
    const directory = `${source.path}/${name}`;
    findings.addLines("error", directory, TritonError.from(error).message);
    return { name, directory, configPath: directory, findings };
  }
}

/** @param shownPath the model's directory for display; the inspected directory may be a copy */
function inspectionOf(
  { name, directory, config, labels, findings }: InspectedModel,
  shownPath: string,
): ModelInspection {
  const shown = (text: string) => (directory === shownPath ? text : text.replaceAll(directory, shownPath));
  return {
    name,
    directory: shownPath,
    config: findings.hasErrors ? undefined : config,
    ...(labels !== undefined && !findings.hasErrors && { labels }),
    findings: findings.all.map((one) => ({ ...one, path: shown(one.path), message: shown(one.message) })),
  };
}

function noteDoubles(models: readonly InspectedModel[]): void {
  for (const { name, directory, findings } of models) {
    if (models.filter((model) => model.name === name).length < 2) continue;
    const message = `failed to poll model '${name}': not unique across all model repositories`;
    findings.add({ severity: "error", path: directory, message });
  }
}

function inspectEnsembles(models: readonly InspectedModel[]): void {
  const byKey = new Map<ModelKey, InspectedModel>(
    models.map((model) => [keyOf({ namespace: "", name: model.name }), model]),
  );
  const nodes = [...byKey].flatMap(([key, { polled }]) =>
    polled === undefined ? [] : [[key, polled] as const],
  );
  const dependencies = new Dependencies(new Map(nodes), () => false);
  const broken = brokenMembers(dependencies, new Map(nodes), byKey);
  for (const [key, { config, id }] of nodes) {
    const steps = config.ensembleScheduling?.step;
    if (steps === undefined) continue;
    const { findings, configPath } = byKey.get(key)!;
    const add = (message: string) => findings.add({ severity: "error", path: configPath, message });
    const problem = dependencies.problemOf(key);
    const unread = dependencies.missingOf(key).filter((name) => byKey.has(keyOf({ namespace: "", name })));
    if (problem !== undefined && unread.length === 0) add(problem);
    for (const name of new Set([...unread, ...broken(key)])) {
      add(`ensemble '${id.name}' depends on '${name}' which is not valid.`);
    }
    for (const { modelName, modelVersion } of steps) {
      const served = byKey.get(keyOf({ namespace: "", name: modelName }))?.versions;
      if (modelVersion === -1 || served === undefined || served.includes(modelVersion)) continue;
      add(
        `ensemble '${id.name}' depends on '${modelName}' whose required version ${modelVersion} is not loaded.`,
      );
    }
    const memberOf = ({ modelName }: { readonly modelName: string }) =>
      byKey.get(keyOf({ namespace: "", name: modelName }))?.config;
    for (const message of membersProblems(config, memberOf)) add(message);
  }
}

/** Adds a finding for each member of an ensemble that has errors of its own. */
function brokenMembers(
  dependencies: Dependencies,
  nodes: ReadonlyMap<ModelKey, { readonly config: ModelConfig }>,
  models: ReadonlyMap<ModelKey, InspectedModel>,
): (ensemble: ModelKey) => string[] {
  const had = new Map([...models].map(([key, { findings }]) => [key, findings.hasErrors]));
  return (ensemble) =>
    [...dependencies.membersOf(ensemble)]
      .filter((member) => nodes.has(member) && had.get(member) === true)
      .map((member) => models.get(member)!.name);
}

interface InspectedModel {
  readonly name: string;
  readonly directory: string;
  /** Its configuration file, which may be missing. */
  readonly configPath: string;
  readonly findings: Findings;
  /** The configuration before the model's file is read; undefined if it is rejected before that. */
  readonly polled?: PolledModel;
  readonly versions?: readonly number[];
  /** The completed configuration; undefined for a model that cannot be served. */
  readonly config?: ModelConfig;
  readonly labels?: ReadonlyMap<string, readonly string[]>;
}

/** Makes all checks that loading a model makes, and continues where loading would stop. */
async function inspectModel(
  root: string,
  name: string,
  options: InspectOptions,
  gpus: Gpus,
): Promise<InspectedModel> {
  const directory = join(root, name);
  const configPath = await configPathOf(directory, options);
  const findings = new Findings();
  const model = { name, directory, configPath, findings };
  const log = logTo(findings, configPath);
  try {
    await assertInside(root, directory);
    await inspectNames(directory, configPath, findings);
    const readable = await inspectText(configPath, name, findings);
    if (!readable) return model;
    const id = { namespace: "", name };
    const open = async () => ({ root, directory });
    const target = { id, repository: root, previous: undefined, explicit: true, open };
    const polled = await pollModel(target, options, log);
    const { versions, missing, problem } = await selectVersions(polled);
    for (const message of missing) findings.add({ severity: "warning", path: configPath, message });
    if (problem !== undefined) findings.add({ severity: "error", path: directory, message: problem });
    const { extensions = [] } = options;
    const parameters = Object.assign({}, ...extensions.map((one) => one.parameters));
    const server = { gpus, log, parameters: () => parameters };
    const plan = await inspectVersions(polled, versions, options, server, findings);
    inspectWarmup(polled, configPath, findings);
    return { ...model, polled, versions, ...(plan && { config: plan.config, labels: plan.labels }) };
  } catch (error) {
    findings.addLines("error", configPath, TritonError.from(error).message);
    return model;
  }
}

/** Reports names in the directory that are nearly right. */
async function inspectNames(directory: string, configPath: string, findings: Findings): Promise<void> {
  for (const line of readVersionDirectories(await subdirectories(directory)).ignored) {
    findings.add({ severity: "warning", path: directory, message: line });
  }
  if (await exists(configPath)) return;
  for (const name of await contents(directory)) {
    if (!/^config\.\w+(\.txt)?$/i.test(name)) continue;
    const message = `'${name}' is ignored: the configuration is '${basename(configPath)}'`;
    findings.add({ severity: "warning", path: join(directory, name), message });
  }
}

/** Reports all faults of the text. Returns false when there are any. */
async function inspectText(path: string, name: string, findings: Findings): Promise<boolean> {
  if (!(await exists(path))) return true;
  const { config, errors } = parsePrototxt(await readSmallFile(path));
  for (const { line, column, text, field } of errors) {
    const message = field === "" ? text : `${text} (field '${field}')`;
    findings.add({ severity: "error", path, line, column, message });
  }
  // These fields have to be removed in any case.
  if (errors.length === 0) {
    for (const problem of fieldProblems({ ...config, name })) {
      findings.add({ severity: "error", path, message: problem });
    }
  }
  return errors.length === 0;
}

type InspectedVersion = Pick<ModelPlan, "config" | "labels">;

/** Inspects each version that would be served. @returns the first valid version */
async function inspectVersions(
  polled: PolledModel,
  versions: readonly number[],
  options: InspectOptions,
  server: PlanServer,
  findings: Findings,
): Promise<InspectedVersion | undefined> {
  const plans: InspectedVersion[] = [];
  for (const version of versions) {
    const path = join(polled.directory, String(version));
    try {
      const plan = await versionOf(polled, version, options, server);
      const problems = options.extensions?.flatMap((one) => one.problems?.(plan.config) ?? []) ?? [];
      for (const problem of problems) findings.addLines("error", path, problem);
      plans.push(plan);
    } catch (error) {
      findings.addLines("error", path, TritonError.from(error).message);
      // The written configuration of a model is checked even if its file cannot be read.
      const { input, output } = polled.config;
      if (input.length === 0 || output.length === 0) continue;
      for (const problem of validateModelIo(polled.config)) findings.addLines("error", path, problem);
    }
  }
  return plans[0];
}

/**
 * The plan of the version, whose configuration is completed from its file. If that configuration is rejected, the model is opened, as
 * loading would do: the outputs declared by the file may differ from those that the model makes.
 */
async function versionOf(
  polled: PolledModel,
  version: number,
  options: InspectOptions,
  server: PlanServer,
): Promise<InspectedVersion> {
  try {
    return (await planVersion(polled, version, options, server, false)).plan;
  } catch (error) {
    try {
      const quiet = { ...server, log: QUIET };
      const { plan, close } = await planVersion(polled, version, options, quiet, true);
      await close();
      return plan;
    } catch (whenOpen) {
      // If the model's runtime is not installed, the error from the file is reported.
      throw TritonError.from(whenOpen).code === "UNAVAILABLE" ? error : whenOpen;
    }
  }
}

function inspectWarmup({ directory, config }: PolledModel, configPath: string, findings: Findings): void {
  const read = dataFilesOf(directory, "warmup");
  for (const { name, inputs } of config.modelWarmup) {
    for (const [input, { inputDataFile }] of Object.entries(inputs)) {
      if (inputDataFile === undefined || inputDataFile === "") continue;
      try {
        read(inputDataFile);
      } catch (error) {
        const message = `warmup sample '${name}': cannot read the data of input '${input}': ${TritonError.from(error).message}`;
        findings.add({ severity: "error", path: configPath, message });
      }
    }
  }
}

function logTo(findings: Findings, path: string): Log {
  const add = (severity: Finding["severity"]) => (message: string) =>
    findings.addLines(severity, path, message);
  return new Log({ error: add("error"), warn: add("warning"), info: () => {}, debug: () => {} });
}

/** A fact about a model of a repository that its author should know. */
export interface Finding {
  /** An `error` keeps the model, or a version of it, from being served. */
  readonly severity: "error" | "warning";
  /** The file or directory concerned. */
  readonly path: string;
  /** Line in the file, from 1; only for faults of the text itself. */
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
}

export class Findings {
  readonly all: Finding[] = [];

  /** Adds a finding. The same finding about several files of a model is reported for the first file. */
  add(finding: Finding): void {
    const isKnown = this.all.some(({ line, column, message }) => {
      return message === finding.message && line === finding.line && column === finding.column;
    });
    if (!isKnown) this.all.push(finding);
  }

  addLines(severity: Finding["severity"], path: string, text: string): void {
    for (const message of text.split("\n")) {
      if (message.trim() !== "") this.add({ severity, path, message });
    }
  }

  get hasErrors(): boolean {
    return this.all.some(({ severity }) => severity === "error");
  }
}
