import type { DataType, ModelConfig, TensorValue } from "@tritonjs/protocol";

/** Default values of inputs by name, without the batch axis. */
export type Defaults = Readonly<Record<string, TensorValue<DataType>>>;

/** One decorator of a callback, as far as others must know of it. */
export type Decorator =
  | { readonly name: "batch" | "sample" | "padBatch" | "tritonContext" }
  | { readonly name: "groupByKeys" }
  | { readonly name: "groupByValues" | "firstValue"; readonly keys: readonly string[] }
  | { readonly name: "fillOptionals"; readonly defaults: Defaults };

/** A decorator that stands around `batch` and `sample`, or around a callback that takes requests. */
export type RequestDecorator = Extract<Decorator, { readonly name: "groupByKeys" | "fillOptionals" }>;

/** Marks decorated functions with their decorators; shared between copies of the library and between threads. */
const mark = Symbol.for("tritonjs.decorators");

const NONE: readonly Decorator[] = [];
const NO_REQUEST_DECORATORS: readonly RequestDecorator[] = [];

/** The decorators of a function, outermost first. */
export function decoratorsOf(fn: unknown): readonly Decorator[] {
  return (fn as { [mark]?: readonly Decorator[] } | undefined)?.[mark] ?? NONE;
}

/** Writes down the decorators of a function. */
export function markDecorators(fn: object, decorators: readonly Decorator[]): void {
  Object.defineProperty(fn, mark, { value: decorators });
}

/** The decorators that see requests before a callback does, outermost first. */
export function requestDecoratorsOf(fn: unknown): readonly RequestDecorator[] {
  const decorators = decoratorsOf(fn);
  return decorators.some(isRequestDecorator) ? decorators.filter(isRequestDecorator) : NO_REQUEST_DECORATORS;
}

/** True for `batch` and `sample`, which make tensors of requests. */
export function makesTensors({ name }: Decorator): boolean {
  return name === "batch" || name === "sample";
}

/** True for a decorator that sees requests, not tensors. */
export function isRequestDecorator(decorator: Decorator): decorator is RequestDecorator {
  return decorator.name === "groupByKeys" || decorator.name === "fillOptionals";
}

/**
 * True for a callback that divides a batch of requests with other optional inputs, or fills in all that are missing.
 * Optional inputs of variable shape are none of its business: which of them could go together the batcher decides.
 */
export function takesMixedInputs(fn: unknown, { input }: ModelConfig): boolean {
  const optional = input.filter((one) => one.optional);
  if (optional.some(({ dims, isShapeTensor }) => isShapeTensor || dims.includes(-1))) return false;
  return requestDecoratorsOf(fn).some(
    (one) => one.name === "groupByKeys" || optional.every(({ name }) => Object.hasOwn(one.defaults, name)),
  );
}
