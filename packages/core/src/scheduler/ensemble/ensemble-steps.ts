import { type ModelConfig, matchesShape, NO_PARAMETERS, type Tensor, TritonError } from "@tritonjs/protocol";
import type { InferenceRequest } from "../../request/inference-request.js";
import type { InferenceResponse } from "../../request/inference-response.js";
import { type SequencePosition, sequenceParameters } from "../../request-info.js";
import { copyTensor } from "../../tensor-rows.js";

export interface PlannedStep {
  readonly index: number;
  readonly modelName: string;
  /** Empty for the highest version that is ready. */
  readonly modelVersion: string;
  /** Namespace of the model, if several models have that name; empty if it is not needed. */
  readonly modelNamespace: string;
  /** Inputs of the model, each with the ensemble's tensor for it. */
  readonly inputs: readonly (readonly [input: string, tensor: string])[];
  /** The ensemble's tensors, by the names of the model's outputs. */
  readonly outputs: ReadonlyMap<string, string>;
}

/** The part of an ensemble that has to run for one request. */
export interface EnsembleSelection {
  readonly consumers: ReadonlyMap<string, readonly PlannedStep[]>;
  /** Outputs of each step's model that are read. */
  readonly requestedOutputs: ReadonlyMap<PlannedStep, readonly string[]>;
  /** Number of reads of each tensor: by inputs of steps, and one by the answer if the tensor is part of it. */
  readonly readers: ReadonlyMap<string, number>;
  readonly outputs: readonly string[];
  /** Outputs of each step's model that only other steps read, with these steps. */
  readonly inner: ReadonlyMap<PlannedStep, ReadonlyMap<string, readonly PlannedStep[]>>;
}

/** The steps of an ensemble as data flow: the step that writes each tensor, and the steps that read it. */
export class EnsemblePlan {
  readonly steps: readonly PlannedStep[];
  /** Inputs that a request may leave out. */
  readonly optionalInputs: readonly string[];
  readonly #outputs: readonly string[];
  readonly #producers = new Map<string, PlannedStep>();
  readonly #all: EnsembleSelection;

  constructor(config: ModelConfig) {
    this.steps = config.ensembleScheduling!.step.map((step, index) => ({
      index,
      modelName: step.modelName,
      modelVersion: step.modelVersion === -1 ? "" : String(step.modelVersion),
      modelNamespace: step.modelNamespace,
      inputs: Object.entries(step.inputMap),
      outputs: new Map(Object.entries(step.outputMap)),
    }));
    for (const step of this.steps)
      for (const tensor of step.outputs.values()) this.#producers.set(tensor, step);
    this.optionalInputs = config.input.filter((input) => input.optional).map((input) => input.name);
    this.#outputs = config.output.map((output) => output.name);
    this.#all = this.#selectFor(this.#outputs);
  }

  /** Selects the steps for the outputs that a request asks for; no names select all outputs. */
  select(requested: readonly string[]): EnsembleSelection {
    if (requested.length === 0) return this.#all;
    return this.#selectFor(this.#outputs.filter((name) => requested.includes(name)));
  }

  #selectFor(outputs: readonly string[]): EnsembleSelection {
    const needed = new Set<PlannedStep>();
    const need = (tensor: string) => {
      const step = this.#producers.get(tensor);
      if (step !== undefined) needed.add(step);
    };
    for (const output of outputs) need(output);
    // A set also visits what is added meanwhile.
    for (const step of needed) for (const [, input] of step.inputs) need(input);
    const consumers = new Map<string, PlannedStep[]>();
    const readers = new Map(outputs.map((name) => [name, 1]));
    for (const step of needed) {
      for (const [, tensor] of step.inputs) readers.set(tensor, (readers.get(tensor) ?? 0) + 1);
      for (const tensor of new Set(step.inputs.map(([, name]) => name))) {
        const others = consumers.get(tensor) ?? [];
        others.push(step);
        consumers.set(tensor, others);
      }
    }
    const requestedOutputs = new Map(
      [...needed].map((step) => [
        step,
        [...step.outputs].filter(([, tensor]) => readers.has(tensor)).map(([output]) => output),
      ]),
    );
    const inner = new Map(
      [...needed].map((step) => {
        const read = [...step.outputs].filter(
          ([, tensor]) => consumers.has(tensor) && !outputs.includes(tensor),
        );
        return [step, new Map(read.map(([output, tensor]) => [output, consumers.get(tensor)!]))];
      }),
    );
    return { consumers, requestedOutputs, readers, outputs, inner };
  }
}

/** The error of a step for the caller of its ensemble. */
export function inEnsemble(ensemble: string, error: TritonError): TritonError {
  const { code, message, reason } = error;
  return new TritonError(code, `in ensemble '${ensemble}', ${message}`, { reason, cause: error });
}

/** A model of an ensemble, as its steps see it. */
export interface EnsembleMember {
  readonly version: number;
  readonly config: ModelConfig;
  /** True if its instances take tensors whose elements are elsewhere, such as on a GPU. */
  readonly takesSources: boolean;
  /** Accepts a request; throws if the request is refused. */
  infer(request: InferenceRequest): void;
  /** The version that answers a request, if the step names none. */
  chosen(request: InferenceRequest): EnsembleMember;
}

/**
 * Looks a member up; an empty version means the highest that is ready. Throws `TritonError` if the member is not ready.
 */
export type FindMember = (name: string, version: string, namespace: string) => EnsembleMember;

/**
 * A tensor between the steps of an ensemble. Its last reader gets the tensor itself, and earlier readers get copies,
 * because a model may write to its inputs.
 */
export class EnsembleTensor {
  #tensor: Tensor | undefined;
  #readers: number;

  /**
   * @param tensor undefined for an optional input that was not given, or an output that a model left out
   * @param batchSize rows along the batch axis; 0 for a tensor without one
   * @param sequence sequence of the steps that read it; undefined for a tensor of the ensemble's own request
   */
  constructor(
    tensor: Tensor | undefined,
    private readonly batchSize: number,
    readers: number,
    readonly sequence?: SequencePosition,
  ) {
    this.#tensor = tensor;
    this.#readers = readers;
  }

  /** Takes the tensor for one of its readers, in the shape expected by a model with these dimensions. */
  take(dims: readonly number[], batched: boolean): Tensor | undefined {
    const tensor = this.#tensor;
    if (tensor === undefined) return undefined;
    this.#readers--;
    if (this.#readers <= 0) this.#tensor = undefined;
    const shape = convertShape(tensor.shape, this.batchSize, dims, batched);
    // Readers of a tensor on a GPU do not write to it.
    const own = this.#readers > 0 && tensor.source === undefined ? copyTensor(tensor) : tensor;
    return shape === tensor.shape ? own : own.reshaped(shape);
  }
}

function dimsOf(tensors: ModelConfig["input"] | ModelConfig["output"], name: string): readonly number[] {
  return tensors.find((tensor) => tensor.name === name)?.dims ?? [];
}

/** Dimensions of an input or output of the ensemble itself, as its steps see them. */
function innerDimsOf(tensors: ModelConfig["input"] | ModelConfig["output"], name: string): readonly number[] {
  return tensors.find((tensor) => tensor.name === name)?.reshape?.shape ?? dimsOf(tensors, name);
}

/**
 * Converts the shape of a tensor that goes from a model with a batch axis to one without, or back. An axis of one row
 * is added or removed if the dimensions do not fit as they are. Between models with a batch axis, rows of one value each
 * may lack their second axis, as the answers of Triton's FIL backend do.
 */
export function convertShape(
  shape: readonly number[],
  batchSize: number,
  dims: readonly number[],
  batched: boolean,
): readonly number[] {
  if (batched === batchSize > 0) return batched && lacksAxisOfOne(shape, dims) ? [...shape, 1] : shape;
  const fits = matchesShape(dims, shape);
  if (batched) return fits ? [1, ...shape] : shape;
  return !fits && batchSize === 1 ? shape.slice(1) : shape;
}

function lacksAxisOfOne(shape: readonly number[], dims: readonly number[]): boolean {
  return shape.length === 1 && dims.length === 1 && dims[0] === 1;
}

/**
 * The sequence of a step's request. It is that of the step's first tensor that comes from another step, else that of
 * the ensemble's request.
 */
export function sequenceOf(
  names: Iterable<string>,
  tensors: ReadonlyMap<string, EnsembleTensor>,
  request: SequencePosition,
): SequencePosition {
  for (const name of names) {
    const sequence = tensors.get(name)?.sequence;
    if (sequence !== undefined) return sequence;
  }
  return request;
}

export function stepInputs(
  step: PlannedStep,
  { input, maxBatchSize }: ModelConfig,
  tensors: ReadonlyMap<string, EnsembleTensor>,
): Map<string, Tensor> {
  const inputs = new Map<string, Tensor>();
  for (const [name, source] of step.inputs) {
    const tensor = tensors.get(source)!.take(dimsOf(input, name), maxBatchSize > 0);
    if (tensor !== undefined) inputs.set(name, tensor);
  }
  return inputs;
}

export function ensembleAnswer(
  { config, version }: { readonly config: ModelConfig; readonly version: string },
  request: InferenceRequest,
  names: readonly string[],
  tensors: ReadonlyMap<string, EnsembleTensor>,
): InferenceResponse {
  const outputs = new Map<string, Tensor>();
  for (const name of names) {
    const tensor = tensors.get(name)!.take(innerDimsOf(config.output, name), config.maxBatchSize > 0);
    if (tensor !== undefined) outputs.set(name, tensor);
  }
  const sequence = sequenceOf([...outputs.keys()].reverse(), tensors, request);
  const parameters = outputs.size === 0 ? NO_PARAMETERS : sequenceParameters(sequence);
  return { modelName: config.name, modelVersion: version, id: request.id, parameters, outputs };
}
