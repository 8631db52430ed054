import {
  arrayDatatypes,
  type DataType,
  fromConfigDataType,
  isNdArray,
  type ModelConfig,
  matchesShape,
  type Shape,
  type seenAs,
  type Tensor,
  type TensorSpec,
  type TensorValue,
  TritonError,
  tensorFromValue,
} from "@tritonjs/protocol";
import {
  afterBatch,
  type DecoratesMethod,
  type DecoratorArguments,
  type Defaults,
  decorate,
  decoratorsOf,
  isRequestDecorator,
  type MethodDecoratorContext,
  makesTensors,
} from "./decorate.js";
import type {
  AnyTensorFunc,
  DecoratedTensorFunc,
  InferContext,
  InferFunc,
  StyledInferFunc,
  TensorFunc,
} from "./infer-func.js";

/**
 * Makes a callback that gets the rows of all requests of a batch at once. For each input it gets one ndarray whose
 * first axis is the batch. It returns outputs with as many rows. Works as a function and as a method decorator.
 *
 * @example
 * ```ts
 * const inferFunc = batch(({ x }) => ({ y: affine(x) })); // x: NdArray<Float32Array>, shape [rows, 2]
 *
 * class Model {
 *   @batch
 *   run({ x }: { x: NdArray<Float32Array> }) { return { y: this.affine(x) }; }
 * }
 * triton.bind({ inferFunc: new Model().run, ... });
 * ```
 */
export function batch<
  const I extends readonly TensorSpec[],
  const O extends readonly TensorSpec[],
  N extends PropertyKey = never,
>(fn: AnyTensorFunc<I, O, N>): StyledInferFunc<I, O>;
export function batch<F extends (...args: never[]) => unknown>(method: F, context: MethodDecoratorContext): F;
export function batch<F extends (...args: never[]) => unknown>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
): TypedPropertyDescriptor<F>;
export function batch(...given: DecoratorArguments): unknown {
  return decorate({ name: "batch" }, given);
}

/** Problem of a model that has both a batch axis and a callback made with `sample`. */
export const SAMPLE_TAKES_ONE =
  "config.batching is true, but a callback made with sample() takes one request at a time: leave config.batching out";

/**
 * Makes a callback that gets the tensors of one request, for models without a batch axis. Works as a function and as a
 * method decorator.
 *
 * @example
 * ```ts
 * const inferFunc = sample(({ image }) => ({ boxes: detect(image) })); // image: the whole shape, as specified
 * ```
 */
export function sample<
  const I extends readonly TensorSpec[],
  const O extends readonly TensorSpec[],
  N extends PropertyKey = never,
>(fn: AnyTensorFunc<I, O, N>): StyledInferFunc<I, O>;
export function sample<F extends (...args: never[]) => unknown>(
  method: F,
  context: MethodDecoratorContext,
): F;
export function sample<F extends (...args: never[]) => unknown>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
): TypedPropertyDescriptor<F>;
export function sample(...given: DecoratorArguments): unknown {
  return decorate({ name: "sample" }, given);
}

/**
 * Splits a batch by the sets of inputs that its requests have, and calls the callback once for each set. The results
 * are returned in the order of the requests. Place it around `batch`, which needs requests with the same inputs.
 * Requests with different sets of inputs may then share a batch.
 *
 * @example
 * ```ts
 * const inferFunc = groupByKeys(batch(({ text, hint }) => ({ answer: ask(text, hint) }))); // hint: in all rows or in none
 * ```
 */
export function groupByKeys<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
  fn: InferFunc<I, O>,
): StyledInferFunc<I, O>;
export function groupByKeys<F extends (...args: never[]) => unknown>(
  method: F,
  context: MethodDecoratorContext,
): F;
export function groupByKeys<F extends (...args: never[]) => unknown>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
): TypedPropertyDescriptor<F>;
export function groupByKeys(...given: DecoratorArguments): unknown {
  return decorate({ name: "groupByKeys" }, given);
}

/** Specifications in which the inputs named `K` are always present. */
type Filled<I extends readonly TensorSpec[], K extends string> = {
  readonly [P in keyof I]: I[P] extends { readonly name: K }
    ? Omit<I[P], "optional"> & { readonly optional: false }
    : I[P];
};

/** Result of `fillOptionals`: wraps a callback, or decorates a method. */
export interface FillOptionals<K extends string> extends DecoratesMethod {
  <const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
    fn: InferFunc<Filled<I, K>, O>,
  ): StyledInferFunc<I, O>;
}

/**
 * Fills optional inputs that a request lacks with a default value, for each of its rows. Place it outermost, so that
 * the decorators inside get requests with the same inputs.
 *
 * @param defaults ndarrays, typed arrays or nested arrays without the batch axis; `bind` refuses defaults that do not
 * fit their input
 * @example
 * ```ts
 * const inferFunc = fillOptionals({ temperature: [0.7] })(
 *   batch(({ text, temperature }) => ({ answer: ask(text, temperature) })), // temperature: [rows, 1], always there
 * );
 * ```
 */
export function fillOptionals<const K extends string>(
  defaults: Readonly<Record<K, TensorValue<DataType>>>,
): FillOptionals<K> {
  return ((...given: DecoratorArguments) =>
    decorate({ name: "fillOptionals", defaults }, given)) as FillOptionals<K>;
}

interface ContextSpec {
  readonly name: "tritonContext";
  readonly dtype: "BYTES";
  readonly shape: readonly [];
  readonly [seenAs]: InferContext;
}

export const TRITON_CONTEXT = "tritonContext";

/**
 * Adds the context to the inputs, as `tritonContext`. A callback gets the same object as its second argument anyway.
 * Place it inside `batch` or `sample`.
 *
 * @example
 * ```ts
 * const inferFunc = batch(
 *   tritonContext(({ x, tritonContext }) => ({ y: scale(x, tritonContext.modelConfig.parameters.factor) })),
 * );
 * ```
 */
export function tritonContext<
  const I extends readonly TensorSpec[],
  const O extends readonly TensorSpec[],
  N extends PropertyKey = never,
>(fn: AnyTensorFunc<readonly [...I, ContextSpec], O, N>): DecoratedTensorFunc<I, O>;
export function tritonContext<F extends (...args: never[]) => unknown>(
  method: F,
  context: MethodDecoratorContext,
): F;
export function tritonContext<F extends (...args: never[]) => unknown>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
): TypedPropertyDescriptor<F>;
export function tritonContext(...given: DecoratorArguments): unknown {
  return decorate(
    { name: "tritonContext" },
    given,
    (fn) =>
      function (this: unknown, inputs: object, inferContext) {
        const call = fn as TensorFunc<[], []>;
        return call.call(this, { ...inputs, [TRITON_CONTEXT]: inferContext }, inferContext);
      },
  );
}

/** The defaults of `fillOptionals` as tensors, and the problems of defaults that do not fit their input. */
interface DefaultTensors {
  readonly tensors: ReadonlyMap<string, Tensor>;
  readonly problems: readonly string[];
}

export function defaultTensors(defaults: Defaults, config: ModelConfig): DefaultTensors {
  const tensors = new Map<string, Tensor>();
  const [unknown, dtypes, shapes, problems]: string[][] = [[], [], [], []];
  for (const [name, value] of Object.entries(defaults)) {
    const input = config.input.find((one) => one.name === name);
    if (input === undefined) {
      unknown!.push(name);
      continue;
    }
    const datatype = fromConfigDataType(input.dataType)!;
    const given = dataTypeOf(value);
    if (given !== undefined && !given.includes(datatype)) {
      dtypes!.push(`${name}: dtype=${given[0]} expected_dtype=${datatype}`);
      continue;
    }
    try {
      const tensor = tensorFromValue(value, {
        what: `default of '${name}'`,
        datatype,
        shape: input.dims,
        takesScalar: true,
      });
      if (matchesShape(input.dims, tensor.shape)) tensors.set(name, tensor);
      else shapes!.push(`${name}: shape=${tuple(tensor.shape)} expected_shape=${tuple(input.dims)}`);
    } catch (error) {
      problems!.push(TritonError.from(error).message);
    }
  }
  if (unknown!.length > 0) problems!.unshift(`Could not found ${unknown!.sort().join(", ")} inputs`);
  for (const [list, what] of [[dtypes!, "dtypes"] as const, [shapes!, "shapes"] as const]) {
    if (list.length === 0) continue;
    problems!.push(
      `Could not use ${list.join(", ")} defaults as they have different than input signature ${what}`,
    );
  }
  return { tensors, problems: problems! };
}

/** Data types that an array can have. Undefined for nested arrays, whose elements are converted. */
function dataTypeOf(value: unknown): readonly DataType[] | undefined {
  const elements: unknown = isNdArray(value) ? value.data : value;
  return ArrayBuffer.isView(elements) ? arrayDatatypes(elements) : undefined;
}

function tuple(shape: Shape): string {
  return `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;
}

export function callableProblems(fn: unknown, config: ModelConfig): string[] {
  const decorators = decoratorsOf(fn);
  const problems: string[] = [];
  if (decorators.some(({ name }) => name === "sample") && config.maxBatchSize > 0)
    problems.push(SAMPLE_TAKES_ONE);
  const [outermost] = decorators.filter((one) => !isRequestDecorator(one));
  if (outermost !== undefined && !makesTensors(outermost)) problems.push(afterBatch(outermost));
  const inputs = config.input.map(({ name }) => name);
  for (const decorator of decorators) {
    const { name } = decorator;
    if ((name === "firstValue" || name === "padBatch") && config.maxBatchSize === 0) {
      problems.push(`The @${name} decorator can only be used with models that support batching.`);
    }
    if (name === "firstValue" || name === "groupByValues") {
      const unknown = decorator.keys.filter((key) => !inputs.includes(key));
      if (unknown.length > 0) problems.push(`Could not found ${unknown.join(", ")} inputs`);
    }
    if (name === "fillOptionals") problems.push(...defaultTensors(decorator.defaults, config).problems);
  }
  return problems;
}
