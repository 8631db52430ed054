import {
  type DataType,
  fromConfigDataType,
  type ModelConfig,
  type Tensor,
  TritonError,
} from "@tritonjs/protocol";

import { concatRows } from "../tensor/concat.js";
import { concatFlat } from "../tensor/concat-flat.js";

import { elementOf, filled, padRows } from "../tensor/pad.js";

import { makeBatchInput } from "./batch-input.js";
import { mergeInputs, type Tensors } from "./merge-inputs.js";
import { OutputLayout } from "./output-layout.js";
import { padByFunction } from "./pad-by-function.js";
import type { PaddingRules } from "./padding-rules.js";

type Join = (tensors: readonly Tensor[]) => Tensor;

interface MadeInput {
  readonly name: string;
  make(sources: readonly Tensor[]): Tensor;
  readonly sourceInput: string;
}

/**
 * Position of each request of a batch in the model's tensors, for models that take the batch as a whole:
 *
 * | input | in the batch |
 * |---|---|
 * | ordinary | rows below one another |
 * | padded | the same, after each is filled up to the longest |
 * | ragged (`allowRaggedBatch`) | the elements of all requests in one dimension |
 * | shape tensor | that of the first request: all have the same content |
 *
 * Batch inputs and masks, computed from the shapes of the others, are added to them.
 */
export class BatchLayout {
  /** Padding of the inputs, in the form that other threads can get. */
  readonly padding: PaddingRules | undefined;
  /** True if the batch only puts rows below one another. */
  readonly isPlain: boolean;
  readonly #joins = new Map<string, Join>();
  readonly #made: readonly MadeInput[];
  readonly #outputs: OutputLayout;
  readonly #pad: ((requests: readonly Tensors[]) => readonly Tensors[]) | undefined;

  /** @param padding absent for a model that pads nothing */
  constructor(config: ModelConfig, padding?: PaddingRules) {
    for (const { name, isShapeTensor, allowRaggedBatch, dataType } of config.input) {
      const value = padding?.values[name];
      if (isShapeTensor) this.#joins.set(name, (tensors) => tensors[0]!);
      else if (allowRaggedBatch) this.#joins.set(name, concatFlat);
      else if (value !== undefined) {
        const element = elementOf(value, fromConfigDataType(dataType)!, `padding of input '${name}'`);
        this.#joins.set(name, (tensors) => padRows(tensors, element));
      }
    }
    this.#made = [...batchInputs(config), ...masks(padding)];
    this.#outputs = new OutputLayout(config, padding);
    this.padding = padding && { values: padding.values, masks: padding.masks, cuts: padding.cuts };
    const pad = padding?.pad;
    this.#pad = pad && ((requests) => padByFunction(config, pad, requests));
    this.isPlain =
      this.#joins.size === 0 && this.#made.length === 0 && this.#outputs.isPlain && pad === undefined;
  }

  /**
   * Makes the inputs of a batch. The tensors of a single request are passed on as they are if nothing is computed from
   * them.
   *
   * @throws TritonError if a padding function fails, or the source of a computed input is missing.
   */
  merge(requests: readonly Tensors[]): Tensors {
    if (this.isPlain) return mergeInputs(requests);
    const padded = this.#pad?.(requests) ?? requests;
    const merged = new Map<string, Tensor>();
    for (const name of padded[0]!.keys()) {
      const join = this.#joins.get(name) ?? joinRows;
      merged.set(name, join(padded.map((inputs) => inputs.get(name)!)));
    }
    for (const { name, sourceInput, make } of this.#made) {
      merged.set(name, make(requests.map((inputs) => source(inputs, sourceInput, name))));
    }
    return merged;
  }

  /**
   * Splits the outputs of a batch into those of each request: `rows[i]` rows for request i, in order.
   *
   * @param requests inputs of each request, before padding
   */
  split(outputs: Tensors, requests: readonly Tensors[], rows: readonly number[]): Tensors[] {
    return this.#outputs.split(outputs, requests, rows);
  }
}

function joinRows(tensors: readonly Tensor[]): Tensor {
  return tensors.length === 1 ? tensors[0]! : concatRows(tensors);
}

function batchInputs({ batchInput }: ModelConfig): MadeInput[] {
  return batchInput.flatMap(({ kind, dataType, sourceInput, targetName }) => {
    const datatype = fromConfigDataType(dataType) as "INT32" | "FP32";
    const make: MadeInput["make"] = (sources) =>
      makeBatchInput(
        kind,
        datatype,
        sources.map(({ shape }) => shape),
      );
    return targetName.map((name) => ({ name, sourceInput: sourceInput[0]!, make }));
  });
}

function masks(padding: PaddingRules | undefined): MadeInput[] {
  return (padding?.masks ?? []).map(({ name, datatype, sourceInput }) => {
    const of = (value: number) => elementOf(datatype === "BOOL" ? value === 1 : value, datatype, name);
    return {
      name,
      sourceInput,
      make: (sources) => maskOf(sources, datatype, of(1), of(0)),
    };
  });
}

function maskOf(
  sources: readonly Tensor[],
  datatype: DataType,
  one: number | bigint | Uint8Array,
  zero: number | bigint | Uint8Array,
): Tensor {
  return padRows(
    sources.map(({ shape }) => filled(datatype, shape, one)),
    zero,
  );
}

function source(inputs: Tensors, name: string, target: string): Tensor {
  const tensor = inputs.get(name);
  if (tensor !== undefined) return tensor;
  throw new TritonError(
    "INVALID_ARG",
    `cannot compute batch input '${target}': the request has no input '${name}'`,
    { reason: "INVALID_INPUT" },
  );
}
