import { SAMPLE_TAKES_ONE } from "../callable/sample.js";
import { planInstances } from "../config/instances.js";
import type { ModelConfig } from "../config/model-config.js";
import { resolveConfig } from "../config/resolve-config.js";
import type { TensorSpec } from "../config/tensor-spec.js";
import { validateConfig } from "../config/validate-config.js";
import { unknownKeys, validateOptions } from "../config/validate-options.js";
import { TritonError } from "../errors/triton-error.js";
import { isBackend } from "../instance/backend.js";
import type { ExecutorFactory } from "../model/model-version.js";
import type { AnyBindOptions } from "./bind-options.js";
import { describeBackend } from "./describe-backend.js";
import { planExecutors } from "./plan-executors.js";

/** A binding that was found good. */
export interface Binding {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly labels: ReadonlyMap<string, readonly string[]>;
  readonly createExecutor: ExecutorFactory;
}

const BIND_KEYS = ["modelName", "modelVersion", "inferFunc", "inputs", "outputs", "config", "modelConfig"];

/**
 * Checks what `bind` was given and turns it into a configuration and a way to make instances.
 *
 * @throws TritonError INVALID_ARG with everything that is wrong, one fault a line.
 */
export function planBinding(
  options: AnyBindOptions,
  isTaken: (name: string, version: number) => boolean,
): Binding {
  const { modelName, modelVersion = 1, config = {}, modelConfig } = options;
  const problems = [
    ...unknownKeys("bind", options, BIND_KEYS),
    ...nameProblems(modelName),
    ...validateOptions(config),
  ];
  if (!Number.isSafeInteger(modelVersion) || modelVersion < 1) {
    problems.push(`modelVersion must be an integer of at least 1, got ${modelVersion}`);
  } else if (isTaken(modelName, modelVersion)) {
    problems.push(`model '${modelName}' version ${modelVersion} is bound already`);
  }
  const misshapen = [...specProblems("inputs", options.inputs), ...specProblems("outputs", options.outputs)];
  if (misshapen.length > 0) throw bindError(modelName, [...problems, ...misshapen]);
  const plan = planExecutors(options.inferFunc);
  problems.push(...plan.problems);
  if (plan.generates && config.decoupled === false) {
    problems.push(
      "a generator function answers with any number of responses: config.decoupled must not be false",
    );
  }
  const specs = isBackend(options.inferFunc)
    ? describeBackend(options.inferFunc, options.inputs, options.outputs, config)
    : {
        inputs: options.inputs ?? [],
        outputs: options.outputs ?? [],
        batchingByDefault: plan.batches && config.maxBatchSize !== 0,
        problems: [],
      };
  problems.push(...specs.problems);
  if (options.outputs?.some((output) => output.optional)) problems.push("outputs cannot be optional");
  const resolved = resolveConfig({
    modelName,
    inputs: specs.inputs,
    outputs: specs.outputs,
    options: config,
    decoupledByDefault: plan.generates,
    backend: plan.backend,
    platform: plan.platform,
    batchingByDefault: specs.batchingByDefault,
    defaultInstanceCount: plan.defaultInstanceCount,
    overrides: modelConfig,
  });
  problems.push(...validateConfig(resolved));
  if (!plan.batches && Math.max(resolved.maxBatchSize, config.maxBatchSize ?? 0) > 0) {
    problems.push(SAMPLE_TAKES_ONE);
  }
  const instances = planInstances(resolved).length;
  if (plan.exactInstanceCount !== undefined && plan.exactInstanceCount !== instances) {
    problems.push(
      `inferFunc is a list of ${plan.exactInstanceCount} functions, one for each instance, but config.instanceGroup ` +
        `asks for ${instances} instances`,
    );
  }
  if (problems.length > 0) {
    throw bindError(modelName, problems);
  }
  const labels = new Map(
    (options.outputs ?? []).flatMap(({ name, labels }) => (labels ? [[name, labels]] : [])),
  );
  return { name: modelName, version: modelVersion, config: resolved, labels, createExecutor: plan.create };
}

function bindError(modelName: string, problems: readonly string[]): TritonError {
  const lines = problems.map((problem) => `- ${problem}`).join("\n");
  return new TritonError("INVALID_ARG", `cannot bind model '${modelName}':\n${lines}`);
}

/** What keeps specifications from being read at all: they may come from JavaScript. */
function specProblems(where: string, specs: unknown): string[] {
  if (specs === undefined) return [];
  if (!Array.isArray(specs)) return [`${where} must be a list of { name, dtype, shape }`];
  return specs.flatMap((spec: Partial<TensorSpec> | null, i) => {
    if (typeof spec?.name !== "string") return [`${where}[${i}] must have a name`];
    if (!Array.isArray(spec.shape))
      return [`${where}[${i}] '${spec.name}' must have a shape, a list of dimensions`];
    return typeof spec.dtype === "string" ? [] : [`${where}[${i}] '${spec.name}' must have a dtype`];
  });
}

function nameProblems(name: unknown): string[] {
  if (name === "") return ["Model name cannot be empty"];
  if (typeof name !== "string" || !/^[a-zA-Z0-9._-]+$/.test(name) || name === "." || name === "..") {
    return [
      `Model name can only contain alphanumeric characters, dots, underscores and dashes, got '${String(name)}'`,
    ];
  }
  return [];
}
