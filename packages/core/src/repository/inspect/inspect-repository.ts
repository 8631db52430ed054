import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { realClock } from "../../clock/clock.js";
import { MachineGpus } from "../../config/placement/gpus.js";
import { checkMembers } from "../../config/validation/validate-members.js";

import type { BackendFactory } from "../../instance/backend.js";
import { Log } from "../../observe/log/log.js";
import { Dependencies } from "../dependencies.js";
import { keyOf, type ModelKey } from "../model-id.js";
import type { BackendConfig } from "../repository-options.js";
import { openSources } from "../sources/open-sources.js";
import type { RepositorySource } from "../sources/repository-source.js";
import { type Finding, Findings } from "./finding.js";
import { type InspectContext, type InspectedModel, inspectModel } from "./inspect-model.js";

export type { Finding } from "./finding.js";

/** The server's options for the repositories, with the same meaning as in `new Triton()`. */
export interface InspectOptions {
  readonly modelConfigName?: string;
  /** @default false */
  readonly disableAutoCompleteConfig?: boolean;
  readonly backendConfig?: BackendConfig;
  readonly backends?: Readonly<Record<string, BackendFactory>>;
  readonly backendDirectory?: string;
}

/** The result of inspecting one model. */
export interface ModelInspection {
  readonly name: string;
  readonly directory: string;
  /** The completed configuration; undefined when no version can be served. */
  readonly config: ModelConfig | undefined;
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
  const context = contextOf(options);
  const quiet = new Log({ error() {}, warn() {}, info() {}, debug() {} });
  const sources = openSources(repositories, { clock: realClock, log: quiet });
  try {
    const inspected: InspectedModel[] = [];
    const shownPaths = new Map<InspectedModel, string>();
    for (const source of sources) {
      await source.check();
      await source.refresh(models);
      for (const name of await namesIn(source, models)) {
        const model = await inspectIn(source, name, context);
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
  context: InspectContext,
): Promise<InspectedModel> {
  try {
    const { root } = await source.open(name);
    return await inspectModel(root, name, context);
  } catch (error) {
    const findings = new Findings();
    const directory = `${source.path}/${name}`;
    findings.addLines("error", directory, TritonError.from(error).message);
    return { name, directory, configPath: directory, findings };
  }
}

/** @param shownPath the model's directory for display; the inspected directory may be a copy */
function inspectionOf(
  { name, directory, config, findings }: InspectedModel,
  shownPath: string,
): ModelInspection {
  const shown = (text: string) => (directory === shownPath ? text : text.replaceAll(directory, shownPath));
  return {
    name,
    directory: shownPath,
    config: findings.hasErrors ? undefined : config,
    findings: findings.all.map((one) => ({ ...one, path: shown(one.path), message: shown(one.message) })),
  };
}

function contextOf(options: InspectOptions): InspectContext {
  return {
    modelConfigName: options.modelConfigName,
    autoComplete: !(options.disableAutoCompleteConfig ?? false),
    backends: options.backends ?? {},
    backendDirectory: options.backendDirectory,
    backendConfig: options.backendConfig ?? {},
    gpus: new MachineGpus(),
    memberLabels: () => new Map(),
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
    for (const message of checkMembers(config, memberOf).problems) add(message);
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
