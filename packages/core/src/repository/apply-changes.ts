import { TritonError } from "@tritonjs/protocol";
import { checkMembers } from "../config/validation/validate-members.js";
import type { ModelRegistry } from "../model/registry.js";
import type { Log } from "../observe/log/log.js";
import type { Dependencies } from "./dependencies.js";
import type { ModelKey } from "./model-id.js";
import type { LoadedModel, ModelLoader } from "./model-loader.js";
import type { PolledModel } from "./poll-model.js";
import type { RepositoryState } from "./repository-state.js";

/** The state and the parts that {@link applyChanges} works on. */
export interface ApplyContext {
  readonly state: RepositoryState;
  readonly loader: ModelLoader;
  readonly registry: ModelRegistry;
  readonly log: Log;
}

/** The result of {@link applyChanges}. */
export interface AppliedChanges {
  /** Models that could not be loaded, with their reasons. */
  readonly failed: ReadonlyMap<ModelKey, string>;
  /** Resolves when instances removed by updates in place are released. */
  readonly removed: Promise<void>;
}

/**
 * Loads models in the order of their dependencies, and independent models at the same time. A model that cannot be in
 * service is unloaded.
 *
 * @param keys models to load
 * @param previous models as they were before the change
 * @returns why models could not be loaded, and when removed instances are released
 */
export async function applyChanges(
  keys: ReadonlySet<ModelKey>,
  dependencies: Dependencies,
  previous: ReadonlyMap<ModelKey, PolledModel>,
  context: ApplyContext,
): Promise<AppliedChanges> {
  const { state, loader, log } = context;
  const removed: Promise<void>[] = [];
  const failures = new Map<ModelKey, string>();
  const work = new Map<ModelKey, Promise<void>>();

  const settle = (key: ModelKey): Promise<void> => {
    const begun = work.get(key) ?? settleNow(key);
    work.set(key, begun);
    return begun;
  };

  const settleNow = async (key: ModelKey): Promise<void> => {
    const model = state.models.get(key)!;
    let problem = dependencies.problemOf(key);
    if (problem === undefined) {
      const members = [...dependencies.membersOf(key)].filter((member) => keys.has(member));
      await Promise.all(members.map(settle));
      await waitForBound(model, context.registry);
      problem = memberProblem(key, dependencies, context);
    }
    if (problem !== undefined) {
      state.invalid.set(key, problem);
      log.error(`Invalid argument: ${problem}`);
      await model.agents?.failed();
      void loader.unload(model.id);
      return;
    }
    state.invalid.delete(key);
    const outcome = await load(key, withNamespaces(key, model, dependencies), previous.get(key), context);
    if (typeof outcome === "string") failures.set(key, outcome);
    else removed.push(outcome.removed);
  };

  await Promise.all([...keys].map(settle));
  return { failed: failures, removed: Promise.all(removed).then(() => {}) };
}

async function load(
  key: ModelKey,
  model: PolledModel,
  previous: PolledModel | undefined,
  { state, loader, log }: ApplyContext,
): Promise<LoadedModel | string> {
  try {
    const loaded = await loader.load(model, previous);
    await model.agents?.completed();
    state.failed.delete(key);
    return loaded;
  } catch (error) {
    await model.agents?.failed();
    const { message } = TritonError.from(error);
    if (!message.startsWith("version "))
      log.error(`failed to load model '${model.id.name}': ${message}`, { model: model.id.name });
    state.failed.set(key, message);
    const stays = loader.readyVersions(model.id).length > 0;
    // The versions in service come from the previous files. The next load tries again.
    const known = stays && previous !== undefined ? previous : { ...model, times: undefined };
    state.models.set(key, { ...known, explicit: model.explicit });
    return message;
  }
}

/** Waits for members that the program binds, which load by themselves. */
async function waitForBound({ config }: PolledModel, registry: ModelRegistry): Promise<void> {
  for (const { modelName } of config.ensembleScheduling?.step ?? []) {
    if (registry.isBound(modelName)) await registry.loading(modelName);
  }
}

/** Names the members that keep an ensemble from being loaded. */
function memberProblem(
  key: ModelKey,
  dependencies: Dependencies,
  { state, loader, registry }: ApplyContext,
): string | undefined {
  const { id, config } = state.models.get(key)!;
  const steps = config.ensembleScheduling?.step;
  if (steps === undefined) return undefined;
  for (const { modelName, modelVersion } of steps) {
    const member = dependencies.memberFor(id, modelName);
    const depends = `ensemble '${id.name}' depends on '${modelName}'`;
    const invalid = member && state.invalid.get(member);
    if (invalid !== undefined) {
      return `${depends} which is not valid. Model '${modelName}' failed with error: ${invalid}`;
    }
    const ready =
      member === undefined
        ? registry.ready(modelName).map(({ version }) => version)
        : loader.readyVersions(state.models.get(member)!.id);
    if (ready.length === 0) {
      const failure = member && state.failed.get(member);
      return failure === undefined
        ? `${depends} which has no loaded version.`
        : `${depends} which has no loaded version. Model '${modelName}' loading failed with error: ${failure}`;
    }
    if (modelVersion !== -1 && !ready.includes(modelVersion)) {
      return `${depends} whose required version ${modelVersion} is not loaded.`;
    }
  }
  const named = withNamespaces(key, state.models.get(key)!, dependencies).config;
  return checkMembers(named, (step) => registry.memberOf(step)?.config).problems[0];
}

/** Adds namespaces to the steps of an ensemble, to tell models of the same name apart. */
function withNamespaces(key: ModelKey, model: PolledModel, dependencies: Dependencies): PolledModel {
  const { ensembleScheduling } = model.config;
  if (ensembleScheduling === undefined) return model;
  const members = [...dependencies.membersOf(key)];
  const step = ensembleScheduling.step.map((one) => {
    const member = dependencies.memberFor(model.id, one.modelName);
    const namespace = members.includes(member ?? "") ? member!.slice(0, member!.indexOf("\0")) : "";
    return { ...one, modelNamespace: namespace };
  });
  return { ...model, config: { ...model.config, ensembleScheduling: { ...ensembleScheduling, step } } };
}
