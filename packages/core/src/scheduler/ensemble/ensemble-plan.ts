import type { ModelConfig } from "@tritonjs/protocol";

/** One step of an ensemble. */
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
  /** Steps by the tensors that they read. */
  readonly consumers: ReadonlyMap<string, readonly PlannedStep[]>;
  /** Outputs of each step's model that are read. */
  readonly requestedOutputs: ReadonlyMap<PlannedStep, readonly string[]>;
  /** Number of reads of each tensor: by inputs of steps, and one by the answer if the tensor is part of it. */
  readonly readers: ReadonlyMap<string, number>;
  /** Tensors of the answer, in the ensemble's order. */
  readonly outputs: readonly string[];
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

  /** Walks back from the outputs to the steps that they depend on. */
  #selectFor(outputs: readonly string[]): EnsembleSelection {
    const needed = new Set<PlannedStep>();
    const need = (tensor: string) => {
      const step = this.#producers.get(tensor);
      if (step === undefined || needed.has(step)) return;
      needed.add(step);
      for (const [, input] of step.inputs) need(input);
    };
    for (const output of outputs) need(output);
    const consumers = new Map<string, PlannedStep[]>();
    const readers = new Map(outputs.map((name) => [name, 1]));
    for (const step of needed) {
      for (const [, tensor] of step.inputs) readers.set(tensor, (readers.get(tensor) ?? 0) + 1);
      for (const tensor of new Set(step.inputs.map(([, name]) => name))) {
        consumers.set(tensor, [...(consumers.get(tensor) ?? []), step]);
      }
    }
    const requestedOutputs = new Map(
      [...needed].map((step) => [
        step,
        [...step.outputs].filter(([, tensor]) => readers.has(tensor)).map(([output]) => output),
      ]),
    );
    return { consumers, requestedOutputs, readers, outputs };
  }
}
