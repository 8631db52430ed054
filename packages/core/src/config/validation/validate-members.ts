import { isDecoupled, type ModelConfig, type ModelEnsembleStep, shapeToString } from "@tritonjs/protocol";

/** A tensor of an ensemble as one of its models describes it. */
interface TensorNode {
  /** The model that described it first. */
  readonly model: string;
  readonly dataType: string;
  readonly dims: readonly number[];
  /** `dims` with the batch axis if the model has one. */
  readonly fullDims: readonly number[];
}

/** Result of the check of an ensemble against its members. */
export interface MemberReport {
  /** All mismatches, with Triton's texts. Empty for a valid ensemble. */
  readonly problems: readonly string[];
  /** Whether a request of the ensemble may have any number of responses. */
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
  const nodes = new Map<string, TensorNode>();
  for (const tensor of [...config.input, ...config.output]) {
    const dims = tensor.reshape?.shape ?? tensor.dims;
    nodes.set(tensor.name, nodeOf(config, { ...tensor, dims }));
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

function nodeOf(
  model: ModelConfig,
  { dataType, dims }: { readonly dataType: string; readonly dims: readonly number[] },
): TensorNode {
  return { model: model.name, dataType, dims, fullDims: model.maxBatchSize > 0 ? [-1, ...dims] : dims };
}

function mappingProblems(
  ensemble: string,
  step: ModelEnsembleStep,
  member: ModelConfig,
  nodes: Map<string, TensorNode>,
): string[] {
  const problems: string[] = [];
  const compare = (tensor: string, node: TensorNode) => {
    const known = nodes.get(tensor);
    if (known === undefined) nodes.set(tensor, node);
    else
      problems.push(...inconsistencies(`in ensemble ${ensemble}, ensemble tensor ${tensor}: `, known, node));
  };
  for (const [name, tensor] of Object.entries(step.inputMap)) {
    const input = member.input.find((one) => one.name === name);
    if (input !== undefined) compare(tensor, nodeOf(member, input));
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
    if (output !== undefined) compare(tensor, nodeOf(member, output));
    else {
      problems.push(
        `in ensemble ${ensemble}, ensemble tensor ${tensor} is mapped from non-existing output ${name} in model ` +
          step.modelName,
      );
    }
  }
  return problems;
}

/**
 * Compares shapes with or without their batch axes: a tensor may pass from a model with a batch axis to a model without
 * one.
 */
function inconsistencies(where: string, a: TensorNode, b: TensorNode): string[] {
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
  nodes: ReadonlyMap<string, TensorNode>,
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
  const left = new Set(steps);
  for (let progress = true; progress; ) {
    progress = false;
    for (const entry of left) {
      const inputs = Object.values(entry.step.inputMap);
      const outputs = Object.values(entry.step.outputMap);
      if (inputs.some((tensor) => !origins.has(tensor))) continue;
      const origin = meet(inputs, nodes.get(outputs[0] ?? "")?.model ?? entry.step.modelName);
      const own = entry.member !== undefined && isDecoupled(entry.member) ? ++decoupled : origin;
      for (const tensor of outputs) origins.set(tensor, own);
      left.delete(entry);
      progress = true;
    }
  }
  meet(
    config.output.map(({ name }) => name),
    config.name,
  );
  return { problems, decoupled: decoupled > 0 };
}
