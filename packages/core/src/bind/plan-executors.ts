import {
  errorFor,
  type Isolation,
  isDecoupled,
  type ModelConfig,
  type ModelInstanceGroup,
} from "@tritonjs/protocol";
import { callableProblems } from "../callback/batch-decorators.js";
import { takesMixedInputs } from "../callback/decorate.js";
import { type AnyInferFunc, isGenerator, styleOf } from "../callback/infer-func.js";
import type { Gpus } from "../config/gpus.js";
import {
  countInstances,
  groupList,
  instanceGroupProblems,
  instanceGroups,
  normalizeInstanceGroups,
} from "../config/instance-groups.js";
import { hostingProblems, type InstanceGroupOptions, type ModelOptions } from "../config/model-options.js";
import { type Executor, type ExecutorContext, isBackend } from "../instance/backend.js";
import { InlineExecutor } from "../instance/inline-executor.js";
import { StepwiseExecutor } from "../instance/stepwise-executor.js";
import type { ExecutorFactory } from "../model/model-server.js";
import type { AnyBindOptions } from "./bind-options.js";

export interface ExecutorPlan {
  /** Triton's `backend` and `platform` of the model. */
  readonly backend: string;
  readonly platform: string;
  /** Number of instances if the configuration gives none. */
  readonly defaultInstanceCount: number;
  /** Set if no other number of instances is possible. */
  readonly exactInstanceCount?: number;
  /** True if a callback is a generator function. */
  readonly generates: boolean;
  /** False for `sample` callbacks, which take one request at a time. */
  readonly batches: boolean;
  /** True for a module, which runs in a worker. */
  readonly runsModule?: boolean;
  /** Where the instances can run, the default first. Undefined for a backend that decides by itself. */
  readonly isolations?: readonly Isolation[] | undefined;
  /** Called if the instances shall run elsewhere. */
  readonly elsewhere?: string;
  /** True for native code, which cannot be interrupted within a thread. */
  readonly isNative: boolean;
  readonly problems: readonly string[];
  /** Whether all callbacks accept requests with different sets of optional inputs in one batch. */
  mixesInputs(config: ModelConfig): boolean;
  problemsWith(config: ModelConfig): readonly string[];
  create(context: ExecutorContext): Executor;
}

/** Backend name of models written in JavaScript: callbacks and modules. */
export const JAVASCRIPT = "javascript";

/** Plans how a module is run, which depends on the host. */
export type PlanModule = (
  url: URL,
  options: {
    readonly strict: boolean;
    readonly stepwise?: boolean | undefined;
    readonly releasesInputs?: boolean;
  },
) => ExecutorPlan;

export function planExecutors(
  { inferFunc, strict = false, releasesInputs = false, config }: AnyBindOptions,
  planModule: PlanModule,
): ExecutorPlan {
  if (isBackend(inferFunc)) {
    const { backendName, platform } = inferFunc;
    return {
      backend: backendName,
      platform,
      defaultInstanceCount: 1,
      generates: false,
      batches: true,
      isolations: inferFunc.isolations,
      isNative: inferFunc.endsBatches !== true,
      problems: [],
      mixesInputs: () => false,
      problemsWith: () => [],
      create: (context) => inferFunc.createExecutor(context),
    };
  }
  if (!(inferFunc instanceof URL)) return planFunctions(inferFunc, releasesInputs);
  return planModule(inferFunc, { strict, stepwise: config?.stepwise, releasesInputs });
}

function planFunctions(
  inferFunc: AnyInferFunc | readonly AnyInferFunc[],
  releasesInputs: boolean,
): ExecutorPlan {
  const functions = Array.isArray(inferFunc)
    ? (inferFunc as readonly AnyInferFunc[])
    : [inferFunc as AnyInferFunc];
  const callable = functions.length > 0 && functions.every((fn) => typeof fn === "function");
  const samples = callable && functions.some((fn) => styleOf(fn) === "sample");
  return {
    backend: JAVASCRIPT,
    platform: "",
    defaultInstanceCount: functions.length,
    ...(Array.isArray(inferFunc) ? { exactInstanceCount: functions.length } : {}),
    generates: callable && functions.some(isGenerator),
    batches: !samples,
    isolations: ["inline"],
    elsewhere: "a function cannot leave its thread; export it from a module, and bind the URL of the module",
    isNative: false,
    problems: callable
      ? []
      : ["inferFunc: expected a function, a list of functions, a URL of a module, or a backend"],
    mixesInputs: (config) => functions.every((fn) => takesMixedInputs(fn, config)),
    problemsWith: (config) => [...new Set(functions.flatMap((fn) => callableProblems(fn, config)))],
    create: ({ info, checker, log }) =>
      new InlineExecutor(
        { fn: functions[info.instanceIndex % functions.length]!, info, checker },
        log,
        releasesInputs,
      ),
  };
}

/** Changes that continuous batching makes to a binding. */
interface StepwisePlan {
  /** Options to resolve. Requests reach the step loop one by one. */
  readonly options: ModelOptions;
  problemsWith(config: ModelConfig): string[];
  create(executor: ExecutorFactory): ExecutorFactory;
}

/** Plans how a model is served whose requests run step by step. Undefined for any other model. */
export function planStepwise(
  inferFunc: AnyBindOptions["inferFunc"],
  options: ModelOptions,
): StepwisePlan | undefined {
  const listed = Array.isArray(inferFunc) ? inferFunc : [inferFunc];
  const functions = listed.filter((one) => typeof one === "function");
  const count = functions.filter((fn) => styleOf(fn) === "stepwise").length;
  if (count === 0 && !options.stepwise) return undefined;
  const mixed = isBackend(inferFunc) || count !== functions.length;
  return {
    options: { batcher: false, ...options },
    problemsWith: (config) => [
      ...(mixed
        ? ["config.stepwise is true, but a callback is not made with stepwise(): make all of them with it"]
        : []),
      ...stepwiseProblems(config, options),
    ],
    create: (executor) => (context) =>
      new StepwiseExecutor(executor(context), () => context.info.modelConfig.maxBatchSize),
  };
}

function stepwiseProblems(config: ModelConfig, { stepwise, batcher }: ModelOptions): string[] {
  const problems: string[] = [];
  if (stepwise === false)
    problems.push(
      "config.stepwise is false, but the callback is made with stepwise(): leave config.stepwise out",
    );
  if (config.maxBatchSize < 1) {
    problems.push(
      "a stepwise callback needs config.maxBatchSize: set it to the number of requests that run together",
    );
  }
  if (!isDecoupled(config)) {
    problems.push(
      "config.decoupled is false, but a stepwise callback sends any number of responses: leave config.decoupled out",
    );
  }
  if (batcher || config.dynamicBatching !== undefined) {
    problems.push(
      "config.batcher is given, but a stepwise callback forms its own batches: leave config.batcher out",
    );
  }
  if (config.sequenceBatching !== undefined) {
    problems.push(
      "config.sequence is given, but a stepwise callback keeps its own state between steps: leave config.sequence out",
    );
  }
  return problems;
}

export function instanceProblems(
  config: Pick<ModelConfig, "name" | "instanceGroup">,
  plan: Pick<ExecutorPlan, "isolations" | "elsewhere" | "isNative" | "exactInstanceCount">,
): string[] {
  const { isolations, elsewhere, isNative, exactInstanceCount } = plan;
  const problems = config.instanceGroup.flatMap(({ hosting }) =>
    hosting === undefined || isolations === undefined
      ? []
      : hostingProblems("config.instanceGroup", hosting, isolations, isNative, elsewhere),
  );
  const instances = countInstances(config);
  if (exactInstanceCount !== undefined && exactInstanceCount !== instances) {
    problems.push(
      `inferFunc has ${exactInstanceCount} functions, one for each instance, but config.instanceGroup ` +
        `asks for ${instances} instances`,
    );
  }
  return problems;
}

/** Argument of `updateInstances`: the new groups, or a number, which becomes the count of the first present group. */
export type InstanceChange = number | InstanceGroupOptions | readonly InstanceGroupOptions[];

/** Turns the argument of `updateInstances` into instance groups, or throws all their problems. */
export function changedGroups(
  change: InstanceChange,
  config: ModelConfig,
  gpus: Gpus,
  check: (config: ModelConfig) => readonly string[],
): ModelInstanceGroup[] {
  const named = { name: config.name, platform: config.platform };
  const given =
    typeof change === "number"
      ? config.instanceGroup.map((group, i) => (i === 0 ? { ...group, count: change } : group))
      : instanceGroups(config.name, groupList(change), 1);
  const instanceGroup =
    typeof change === "number" ? given : normalizeInstanceGroups({ ...named, instanceGroup: given }, gpus);
  const changed = { ...config, instanceGroup };
  const problems = [...instanceGroupProblems(changed, gpus), ...check(changed)];
  if (problems.length > 0) {
    throw errorFor(
      "INVALID_CONFIG",
      `cannot change the instances of model '${config.name}':\n${problems.map((one) => `- ${one}`).join("\n")}`,
    );
  }
  return instanceGroup;
}
