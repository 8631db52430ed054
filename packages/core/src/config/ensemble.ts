import {
  isDecoupled,
  type ModelConfig,
  type ModelEnsembleStep,
  optionTypes,
  shapeToString,
  type TensorSpec,
} from "@tritonjs/protocol";
import {
  DEFAULT_MAX_BATCH_SIZE,
  emptyModelConfig,
  emptyModelInput,
  emptyModelOutput,
  specFields,
  textParameters,
} from "@tritonjs/protocol/config";

/** One step of an ensemble: a model and its connections. Part of the options of `bindEnsemble`. */
export interface EnsembleStep {
  readonly modelName: string;
  /** Version of the model. @default the highest version that is ready */
  readonly modelVersion?: number;
  /** Tensor of the ensemble that each input of the model gets, by input name. */
  readonly inputMap: Readonly<Record<string, string>>;
  /** Tensor of the ensemble that each output of the model becomes, by output name. */
  readonly outputMap: Readonly<Record<string, string>>;
}

/** How an ensemble is served. */
export interface EnsembleOptions {
  /** Whether tensors have a leading batch axis. @default true */
  readonly batching?: boolean;
  /** Largest number of rows in one request, at most that of any member. @default 4 */
  readonly maxBatchSize?: number;
  /** Whether equal requests are answered from the cache of `new Triton({ responseCache })`. @default false */
  readonly responseCache?: boolean;
  /**
   * Largest number of requests in flight in one step, over all requests of the ensemble. A decoupled model pauses while
   * a step after it has reached the limit. 0 for no limit. @default 0
   */
  readonly maxInflightRequests?: number;
  /** Free text, shown in the configuration. */
  readonly parameters?: Readonly<Record<string, string>>;
}

export const ENSEMBLE_OPTION_TYPES = optionTypes<EnsembleOptions>({
  batching: "boolean",
  maxBatchSize: "number",
  responseCache: "boolean",
  maxInflightRequests: "number",
  parameters: "object",
});
export const ENSEMBLE_STEP_TYPES = optionTypes<EnsembleStep>({
  modelName: "string",
  modelVersion: "number",
  inputMap: "object",
  outputMap: "object",
});

interface ResolveEnsembleInput {
  readonly modelName: string;
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly steps: readonly EnsembleStep[];
  readonly options: EnsembleOptions;
  /** Fields of Triton's message. They override the options. */
  readonly overrides?: Partial<ModelConfig>;
}

/** Turns specifications, steps and options into a configuration. Checks nothing. */
export function resolveEnsemble(source: ResolveEnsembleInput): ModelConfig {
  const { modelName: name, options } = source;
  const { optimization: _, ...empty } = emptyModelConfig();
  const config: ModelConfig = {
    ...empty,
    name,
    platform: ENSEMBLE_PLATFORM,
    maxBatchSize: options.batching === false ? 0 : (options.maxBatchSize ?? DEFAULT_MAX_BATCH_SIZE),
    input: source.inputs.map((spec) => ({
      ...emptyModelInput(),
      ...specFields(spec),
      optional: spec.optional ?? false,
    })),
    output: source.outputs.map((spec) => ({
      ...emptyModelOutput(),
      ...specFields(spec),
    })),
    ensembleScheduling: {
      step: source.steps.map((step) => ({
        modelName: step.modelName,
        modelVersion: step.modelVersion ?? -1,
        inputMap: { ...step.inputMap },
        outputMap: { ...step.outputMap },
        modelNamespace: "",
      })),
      ...(options.maxInflightRequests ? { maxInflightRequests: options.maxInflightRequests } : {}),
    },
    parameters: textParameters(options.parameters),
    // Set once its members are known: an ensemble with a decoupled member is decoupled.
    modelTransactionPolicy: { decoupled: false },
  };
  if (options.responseCache) config.responseCache = { enable: true };
  return withoutDefaultLimit({ ...config, ...source.overrides });
}

/** Removes a limit of 0, which means no limit and is not shown. */
function withoutDefaultLimit(config: ModelConfig): ModelConfig {
  if (config.ensembleScheduling?.maxInflightRequests !== 0) return config;
  const { maxInflightRequests: _, ...ensembling } = config.ensembleScheduling;
  return { ...config, ensembleScheduling: ensembling };
}

export const ENSEMBLE_PLATFORM = "ensemble";

interface TensorNode {
  readonly name: string;
  /** Inputs of the steps that write the tensor. The tensor exists once these inputs exist. */
  readonly from: Set<string>;
  written: boolean;
  read: boolean;
  /** Whether the tensor can be produced from the inputs of the ensemble. */
  reachable: boolean;
}

/** Lists the problems that an ensemble's own configuration shows. `checkMembers` checks its members. */
export function ensembleProblems(config: ModelConfig): string[] {
  const { name, platform, ensembleScheduling: ensembling } = config;
  if (ensembling === undefined) {
    return platform === ENSEMBLE_PLATFORM
      ? [`ensemble scheduling must be set for ensemble ${name} whose platform is ${ENSEMBLE_PLATFORM}`]
      : [];
  }
  const problems: string[] = [];
  if (platform !== ENSEMBLE_PLATFORM) {
    problems.push(
      `ensemble scheduling cannot be set for model '${name}' whose platform is not ${ENSEMBLE_PLATFORM}`,
    );
  } else if (config.backend !== "") {
    problems.push(
      `Ensemble model '${name}' must have platform type '${ENSEMBLE_PLATFORM}' and empty backend type`,
    );
  }
  if (config.instanceGroup.length > 0) {
    problems.push(`instance group should not be specified for ensemble '${name}'`);
  }
  if (config.optimization !== undefined) {
    problems.push(`optimization should not be specified for ensemble '${name}'`);
  }
  if (config.modelWarmup.length > 0)
    problems.push(`model_warmup can not be specified for ensemble '${name}'`);
  if (config.dynamicBatching !== undefined) {
    problems.push(`dynamic batching should not be specified for ensemble '${name}': its members batch`);
  }
  const limit = ensembling.maxInflightRequests ?? 0;
  if (!Number.isInteger(limit) || limit < 0) {
    problems.push(`'max_inflight_requests' must be a non-negative integer for ensemble '${name}'`);
  }
  if (ensembling.step.length === 0) problems.push(`must specify 'step' for ensemble '${name}'`);
  else problems.push(...graphProblems(config, ensembling.step));
  return problems;
}

function graphProblems(config: ModelConfig, steps: readonly ModelEnsembleStep[]): string[] {
  const nodes = new Map<string, TensorNode>();
  const problems = steps.flatMap((step, index) => linkStep(config.name, step, index, nodes));
  // Triton does not check these, so they follow the problems that it reports.
  const rewritten: string[] = [];
  for (const { name } of config.input) {
    const node = nodes.get(name);
    if (node === undefined) {
      problems.push(`ensemble input '${name}' for ensemble ${config.name}' is not used`);
    } else {
      node.reachable = true;
      if (node.written)
        rewritten.push(`ensemble input '${name}' cannot be in an output map of ensemble '${config.name}'`);
    }
  }
  markReachable(nodes);
  const outputs = new Set(config.output.map((output) => output.name));
  for (const name of outputs) {
    const node = nodes.get(name);
    if (node === undefined) {
      problems.push(`ensemble output '${name}' for ensemble ${config.name}' is not used`);
    } else if (!node.reachable) {
      problems.push(
        `output '${name}' for ensemble '${config.name}' is not written${missingSource(node, nodes)}`,
      );
    }
  }
  // Unwritten tensors on which an output depends have been named above.
  for (const node of nodes.values()) {
    if (!outputs.has(node.name) && (!node.read || (node.written && !node.reachable))) {
      problems.push(`ensemble tensor '${node.name}' is unused in ensemble '${config.name}'`);
    }
  }
  return [...problems, ...rewritten];
}

function linkStep(
  ensemble: string,
  step: ModelEnsembleStep,
  index: number,
  nodes: Map<string, TensorNode>,
): string[] {
  const problems: string[] = [];
  const missing = (field: string) =>
    problems.push(`must specify '${field}' in step ${index} of ensemble '${ensemble}'`);
  const inputs = Object.values(step.inputMap);
  const outputs = Object.values(step.outputMap);
  if (step.modelName === "") missing("model_name");
  if (inputs.length === 0) missing("input_map");
  if (outputs.length === 0) missing("output_map");
  for (const name of outputs) {
    const node = nodeOf(name, nodes);
    if (node.written) {
      problems.push(
        `ensemble tensor '${name}' can appear in an output map only once for ensemble '${ensemble}' step ${index}`,
      );
    }
    node.written = true;
    for (const input of inputs) node.from.add(input);
  }
  for (const name of inputs) nodeOf(name, nodes).read = true;
  return problems;
}

function nodeOf(name: string, nodes: Map<string, TensorNode>): TensorNode {
  let node = nodes.get(name);
  if (node === undefined) {
    node = { name, from: new Set(), written: false, read: false, reachable: false };
    nodes.set(name, node);
  }
  return node;
}

/** A tensor is reachable when a step writes it and all inputs of that step are reachable. */
function markReachable(nodes: ReadonlyMap<string, TensorNode>): void {
  const all = [...nodes.values()];
  const known = all.filter(({ reachable }) => reachable).map(({ name }) => name);
  const made = all.filter(({ reachable, written }) => !reachable && written);
  for (const node of inDependencyOrder(
    made,
    known,
    ({ from }) => from,
    ({ name }) => [name],
  ))
    node.reachable = true;
}

/** Gives what can be made, each after all that it needs, in a time proportional to the connections. */
function* inDependencyOrder<T>(
  items: readonly T[],
  known: readonly string[],
  needsOf: (item: T) => Iterable<string>,
  makesOf: (item: T) => readonly string[],
): Generator<T> {
  const found = new Set(known);
  const missing = new Map<T, number>();
  const users = new Map<string, T[]>();
  const ready: T[] = [];
  for (const item of items) {
    const needs = [...new Set(needsOf(item))].filter((name) => !found.has(name));
    missing.set(item, needs.length);
    if (needs.length === 0) ready.push(item);
    for (const name of needs) {
      const waiting = users.get(name) ?? [];
      waiting.push(item);
      users.set(name, waiting);
    }
  }
  // The loop also visits what is added meanwhile.
  for (const item of ready) {
    yield item;
    for (const name of makesOf(item)) {
      if (found.has(name)) continue;
      found.add(name);
      for (const user of users.get(name) ?? []) {
        const left = missing.get(user)! - 1;
        missing.set(user, left);
        if (left === 0) ready.push(user);
      }
    }
  }
}

function missingSource(output: TensorNode, nodes: ReadonlyMap<string, TensorNode>): string {
  const seen = new Set([output.name]);
  let last = output;
  for (let next: TensorNode | undefined = output; next !== undefined; ) {
    last = next;
    next = [...next.from]
      .map((name) => nodes.get(name)!)
      .find((node) => !node.reachable && !seen.has(node.name));
    if (next !== undefined) seen.add(next.name);
  }
  return last === output ? "" : `: at least one of its depending tensors, '${last.name}', is not connected`;
}

interface MemberTensor {
  /** The model that described it first. */
  readonly model: string;
  readonly dataType: string;
  readonly dims: readonly number[];
  /** `dims` with the batch axis if the model has one. */
  readonly fullDims: readonly number[];
}

interface MemberReport {
  /** All mismatches, with Triton's texts. Empty for a valid ensemble. */
  readonly problems: readonly string[];
  readonly decoupled: boolean;
}

/**
 * Checks an ensemble against the models of its steps: batch sizes, names, data types and shapes of tensors. It also
 * checks that no step joins responses of different decoupled models.
 *
 * @param memberOf returns the configuration of the model of a step; undefined if the model is missing
 */
export function checkMembers(
  config: ModelConfig,
  memberOf: (step: ModelEnsembleStep) => ModelConfig | undefined,
): MemberReport {
  const problems: string[] = [];
  const nodes = new Map<string, MemberTensor>();
  for (const tensor of [...config.input, ...config.output]) {
    const dims = tensor.reshape?.shape ?? tensor.dims;
    nodes.set(tensor.name, memberTensorOf(config, { ...tensor, dims }));
  }
  const steps = (config.ensembleScheduling?.step ?? []).map((step) => ({ step, member: memberOf(step) }));
  for (const { step, member } of steps) {
    if (member === undefined) continue;
    if (member.maxBatchSize !== 0 && member.maxBatchSize < config.maxBatchSize) {
      problems.push(
        `ensemble ${config.name} allows maximum batch size ${config.maxBatchSize}, but it contains model ` +
          `${step.modelName} which only allows maximum batch size to be ${member.maxBatchSize}`,
      );
    }
    problems.push(...mappingProblems(config.name, step, member, nodes));
  }
  const flow = decoupledFlow(config, steps, nodes);
  return { problems: [...new Set([...problems, ...flow.problems])], decoupled: flow.decoupled };
}

function memberTensorOf(
  model: ModelConfig,
  { dataType, dims }: { readonly dataType: string; readonly dims: readonly number[] },
): MemberTensor {
  return { model: model.name, dataType, dims, fullDims: model.maxBatchSize > 0 ? [-1, ...dims] : dims };
}

function mappingProblems(
  ensemble: string,
  step: ModelEnsembleStep,
  member: ModelConfig,
  nodes: Map<string, MemberTensor>,
): string[] {
  const problems: string[] = [];
  const compare = (tensor: string, node: MemberTensor) => {
    const known = nodes.get(tensor);
    if (known === undefined) nodes.set(tensor, node);
    else
      problems.push(...inconsistencies(`in ensemble ${ensemble}, ensemble tensor ${tensor}: `, known, node));
  };
  for (const [name, tensor] of Object.entries(step.inputMap)) {
    const input = member.input.find((one) => one.name === name);
    if (input !== undefined) compare(tensor, memberTensorOf(member, input));
    else {
      problems.push(
        `in ensemble ${ensemble}, ensemble tensor ${tensor} is mapping to non-existing input ${name} in model ` +
          step.modelName,
      );
    }
  }
  for (const { name, optional } of member.input) {
    if (optional || name in step.inputMap) continue;
    problems.push(
      `in ensemble ${ensemble}, input ${name} in model ${step.modelName} is not mapped to any ensemble tensors`,
    );
  }
  for (const [name, tensor] of Object.entries(step.outputMap)) {
    const output = member.output.find((one) => one.name === name);
    if (output !== undefined) compare(tensor, memberTensorOf(member, output));
    else {
      problems.push(
        `in ensemble ${ensemble}, ensemble tensor ${tensor} is mapped from non-existing output ${name} in model ` +
          step.modelName,
      );
    }
  }
  return problems;
}

/** A tensor may pass from a model with a batch axis to a model without one, so shapes agree with or without it. */
function inconsistencies(where: string, a: MemberTensor, b: MemberTensor): string[] {
  if (a.dataType !== b.dataType) {
    return [
      `${where}inconsistent data type: ${a.dataType} is inferred from model ${a.model} while ${b.dataType} is ` +
        `inferred from model ${b.model}`,
    ];
  }
  if (alike(a.dims, b.dims) || alike(a.fullDims, b.fullDims)) return [];
  return [
    `${where}inconsistent shape: ${shapeToString(a.fullDims)} is inferred from model ${a.model} while ` +
      `${shapeToString(b.fullDims)} is inferred from model ${b.model}`,
  ];
}

function alike(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((dim, axis) => dim === -1 || b[axis] === -1 || dim === b[axis]);
}

/**
 * Assigns each tensor the number of the decoupled step whose responses it belongs to, or 0 for a tensor that exists
 * once. Tensors that meet, in a step or among the outputs, must have the same number.
 */
function decoupledFlow(
  config: ModelConfig,
  steps: readonly { readonly step: ModelEnsembleStep; readonly member: ModelConfig | undefined }[],
  nodes: ReadonlyMap<string, MemberTensor>,
): MemberReport {
  const problems: string[] = [];
  const origins = new Map<string, number>(config.input.map(({ name }) => [name, 0]));
  const meet = (tensors: readonly string[], model: string): number => {
    const origin = origins.get(tensors[0] ?? "") ?? 0;
    if (tensors.some((tensor) => (origins.get(tensor) ?? origin) !== origin)) {
      problems.push(
        `in ensemble ${config.name}, step of model '${model}' receives inputs originated from different decoupled models`,
      );
    }
    return origin;
  };
  let decoupled = 0;
  const inputsOf = ({ step }: (typeof steps)[number]) => Object.values(step.inputMap);
  const outputsOf = ({ step }: (typeof steps)[number]) => Object.values(step.outputMap);
  for (const entry of inDependencyOrder(steps, [...origins.keys()], inputsOf, outputsOf)) {
    const outputs = outputsOf(entry);
    const origin = meet(inputsOf(entry), nodes.get(outputs[0] ?? "")?.model ?? entry.step.modelName);
    const own = entry.member !== undefined && isDecoupled(entry.member) ? ++decoupled : origin;
    for (const tensor of outputs) origins.set(tensor, own);
  }
  meet(
    config.output.map(({ name }) => name),
    config.name,
  );
  return { problems, decoupled: decoupled > 0 };
}
