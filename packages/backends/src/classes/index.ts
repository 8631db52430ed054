import {
  batch,
  type InferContext,
  type JsModel,
  type JsModelArgs,
  sample,
  type TensorSpec,
  type UnnamedTensorSpec,
} from "@tritonjs/core";
import type { AutoCompleteConfig } from "@tritonjs/core/backend";
import type { JsModelClass } from "@tritonjs/core/types";
import { errorFor, isNdArray, nameByPosition, TritonError } from "@tritonjs/protocol";

/**
 * `@tritonjs/backends/classes`: classes with `load` and `predict` as models, in JavaScript and Python, and the
 * `model-settings.json` of MLServer.
 *
 * @module
 */

export { modelSettings, parseClassReference } from "./model-settings.js";

/*
 * The program that runs a JavaScript class with `load` and `predict`. The module of a model that is laid out for a class
 * imports it.
 */

/** Second argument of `predict`, after the input. */
export interface PredictContext extends InferContext {
  /** Names of the columns of the input: the static member `featureNames` of the class. */
  readonly featureNames: readonly string[];
}

/** An object of a class that is served as a model. */
interface ServedModel {
  /** Called once, before the first request. The model is ready when its promise resolves. */
  load?(): unknown;
  /**
   * Computes outputs.
   *
   * @param input the ndarray of the only input, or ndarrays by name if there are several
   * @returns an array for the only output, otherwise arrays by name, or a list in the order of the outputs
   */
  predict(input: never, context: never): unknown;
}

/**
 * A class that is served as a model, as `--model module.js#Class` names it. Its static members describe the model.
 *
 * @example
 * ```ts
 * export class Scale {
 *   static inputs = [{ dtype: "FP32", shape: [2] }];
 *   static outputs = [{ dtype: "FP32", shape: [2] }];
 *   static maxBatchSize = 8;
 *   async load() { this.factor = 2; }
 *   predict(x) { return x.data.map((value) => value * this.factor); }
 * }
 * ```
 */
export interface ServedClass {
  new (parameters: Readonly<Record<string, string>>): ServedModel;
  /** Inputs, without the batch axis if `maxBatchSize` is set. @default one FP64 of shape [-1, -1] */
  readonly inputs?: readonly TensorSpec[] | readonly UnnamedTensorSpec[];
  /** Outputs, in the same form. @default one FP64 of shape [-1, -1] */
  readonly outputs?: readonly TensorSpec[] | readonly UnnamedTensorSpec[];
  /** Largest number of rows in a batch. @default 0, no batching */
  readonly maxBatchSize?: number;
  /** Names of the columns of the input, for `predict`. @default none */
  readonly featureNames?: readonly string[];
}

/**
 * The class of a JavaScript model that runs another class.
 *
 * @param href URL of the module with the class
 * @param name of the class
 * @param written `max_batch_size` of its settings; 0 for that of the class
 * @throws TritonError INVALID_ARG for a module without the class, a class without `predict` and wrong static members;
 * INTERNAL for a module that cannot be imported
 */
export async function modelOfClass(
  modelName: string,
  href: string,
  name: string,
  written: number,
): Promise<JsModelClass> {
  const Served = await importClass(modelName, href, name);
  const maxBatchSize = written > 0 ? written : (Served.maxBatchSize ?? 0);
  const rank = maxBatchSize > 0 ? [-1] : [-1, -1];
  const fallback = [{ dtype: "FP64", shape: rank }] as const;
  const what = `class '${name}' of model '${modelName}'`;
  const inputs = specsOf(what, "inputs", Served.inputs ?? fallback);
  const outputs = specsOf(what, "outputs", Served.outputs ?? fallback);
  return class implements JsModel {
    #model!: ServedModel;
    #inputs: readonly string[] = [];
    #outputs: readonly string[] = [];
    /** Whether its only output has two dimensions, of which the second may be 1. */
    #isColumn = false;

    static autoCompleteConfig(config: AutoCompleteConfig) {
      const given = config.config;
      if (given.input.length === 0)
        for (const { dtype, shape, ...rest } of inputs) {
          const { name, optional } = rest;
          config.addInput({
            name,
            dataType: dtype,
            dims: shape,
            ...(optional !== undefined && { optional }),
          });
        }
      if (given.output.length === 0)
        for (const { name, dtype, shape } of outputs) {
          config.addOutput({ name, dataType: dtype, dims: shape });
        }
      if (maxBatchSize > 0) {
        config.setMaxBatchSize(maxBatchSize);
        config.setDynamicBatching();
      }
    }

    async initialize({ modelConfig }: JsModelArgs) {
      this.#inputs = modelConfig.input.map((input) => input.name);
      this.#outputs = modelConfig.output.map((output) => output.name);
      const [output] = modelConfig.output;
      const rank = (output?.dims.length ?? 0) + Math.sign(maxBatchSize);
      this.#isColumn =
        modelConfig.output.length === 1 && rank === 2 && [1, -1].includes(output!.dims.at(-1)!);
      const parameters = Object.entries(modelConfig.parameters).map(([key, { stringValue }]) => [
        key,
        stringValue,
      ]);
      this.#model = new Served(Object.fromEntries(parameters) as Record<string, string>);
      await this.#model.load?.();
    }

    execute = (maxBatchSize > 0 ? batch : sample)(
      async (values: Readonly<Record<string, unknown>>, context: InferContext) => {
        const input = this.#inputs.length === 1 ? values[this.#inputs[0]!] : values;
        const seen: PredictContext = Object.assign(context, { featureNames: Served.featureNames ?? [] });
        const returned = await this.#model.predict(input as never, seen as never);
        const value = this.#isColumn ? asColumn(returned, input) : returned;
        return named(value, this.#outputs) as never;
      },
    );
  };
}

/** Turns one value for each row of the input into a column. Other values are returned as they are. */
function asColumn(value: unknown, input: unknown): unknown {
  const data: unknown = isNdArray(value) && value.shape.length === 1 ? value.data : value;
  const isFlat = Array.isArray(data)
    ? !data.some((one) => typeof one === "object")
    : ArrayBuffer.isView(data);
  const { length } = data as ArrayLike<unknown>;
  const isOneEach = isFlat && isNdArray(input) && input.shape[0] === length;
  return isOneEach ? Array.from(data as ArrayLike<unknown>, (one) => [one]) : value;
}

/** The outputs of `predict` by name. The array of the only output needs none. */
function named(value: unknown, outputs: readonly string[]): unknown {
  const isByName =
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !ArrayBuffer.isView(value) &&
    !isNdArray(value);
  return isByName || outputs.length > 1 ? value : { [outputs[0]!]: value };
}

async function importClass(modelName: string, href: string, name: string): Promise<ServedClass> {
  const exported = await import(href).catch((error: unknown) => {
    const { message } = TritonError.from(error);
    throw new TritonError("INTERNAL", `model '${modelName}': cannot import ${href}: ${message}`, {
      cause: error,
    });
  });
  const found: unknown = exported[name] ?? exported.default?.[name];
  const isDefault = (exported.default as { name?: unknown } | undefined)?.name === name;
  const Served: unknown = found ?? (isDefault ? exported.default : undefined);
  if (typeof Served !== "function") {
    const names = Object.keys(exported).join(", ") || "nothing";
    throw invalid(`model '${modelName}': expected a class '${name}' in ${href}, which exports ${names}`);
  }
  if (typeof Served.prototype?.predict !== "function") {
    throw invalid(
      `model '${modelName}': expected class '${name}' of ${href} to have a method predict, got none`,
    );
  }
  return Served as ServedClass;
}

function specsOf(what: string, where: "inputs" | "outputs", given: unknown): readonly TensorSpec[] {
  const expected = `${where} of ${what}: expected a list of { name, dtype, shape }`;
  if (!Array.isArray(given)) throw invalid(`static ${expected}, got ${typeof given}`);
  const specs = nameByPosition(where, given);
  for (const [i, spec] of specs.entries()) {
    if (typeof spec?.name !== "string")
      throw invalid(`static ${expected}: [${i}] has no name, but others have one`);
    if (typeof spec.dtype !== "string" || !Array.isArray(spec.shape)) {
      throw invalid(`static ${expected}: '${spec.name}' lacks its dtype or its shape`);
    }
  }
  return specs as readonly TensorSpec[];
}

function invalid(text: string): TritonError {
  return errorFor("INVALID_MODEL", text);
}
