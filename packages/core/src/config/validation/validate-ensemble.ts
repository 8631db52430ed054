import type { ModelConfig, ModelEnsembleStep } from "@tritonjs/protocol";

/** The platform of ensembles. */
export const ENSEMBLE_PLATFORM = "ensemble";

/** A tensor of an ensemble as its steps use it. */
interface TensorNode {
  readonly name: string;
  /** Inputs of the steps that write the tensor. The tensor exists once these inputs exist. */
  readonly from: Set<string>;
  /** Whether a step writes the tensor. */
  written: boolean;
  /** Whether a step reads the tensor. */
  read: boolean;
  /** Whether the tensor can be produced from the inputs of the ensemble. */
  reachable: boolean;
}

/**
 * Lists all problems of an ensemble that its own configuration shows, with Triton's texts. Empty for a valid ensemble,
 * and for a model that is not an ensemble. `checkMembers` checks its members.
 */
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

/** Adds a step to the graph. */
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

/**
 * Marks tensors as reachable. A tensor is reachable when a step writes it and all inputs of that step are reachable.
 */
function markReachable(nodes: ReadonlyMap<string, TensorNode>): void {
  for (let changed = true; changed; ) {
    changed = false;
    for (const node of nodes.values()) {
      if (node.reachable || !node.written) continue;
      if ([...node.from].some((name) => !nodes.get(name)!.reachable)) continue;
      node.reachable = true;
      changed = true;
    }
  }
}

/** Follows a missing tensor back to its origin. */
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
