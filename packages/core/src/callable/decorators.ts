import type { DataType, ModelConfig, TensorValue } from "@tritonjs/protocol";

/** Default values of inputs by name, without the batch axis. */
export type Defaults = Readonly<Record<string, TensorValue<DataType>>>;

/** One decorator of a callback, with the facts that other code needs. */
export type Decorator =
  | { readonly name: "batch" | "sample" | "padBatch" | "tritonContext" }
  | { readonly name: "groupByKeys" }
  | { readonly name: "groupByValues" | "firstValue"; readonly keys: readonly string[] }
  | { readonly name: "fillOptionals"; readonly defaults: Defaults };

/** A decorator that is placed around `batch` and `sample`, or around a callback that takes requests. */
export type RequestDecorator = Extract<Decorator, { readonly name: "groupByKeys" | "fillOptionals" }>;

/** Key under which decorated functions keep their decorators. Copies of the library, and threads, share it. */
const mark = Symbol.for("tritonjs.decorators");

const NONE: readonly Decorator[] = [];
const NO_REQUEST_DECORATORS: readonly RequestDecorator[] = [];

/** The decorators of a function, outermost first. */
export function decoratorsOf(fn: unknown): readonly Decorator[] {
  return (fn as { [mark]?: readonly Decorator[] } | undefined)?.[mark] ?? NONE;
}

/** Records the decorators of a function. */
export function markDecorators(fn: object, decorators: readonly Decorator[]): void {
  Object.defineProperty(fn, mark, { value: decorators });
}

/** The decorators that see requests before a callback does, outermost first. */
export function requestDecoratorsOf(fn: unknown): readonly RequestDecorator[] {
  const decorators = decoratorsOf(fn);
  return decorators.some(isRequestDecorator) ? decorators.filter(isRequestDecorator) : NO_REQUEST_DECORATORS;
}

/** True for `batch` and `sample`, which turn requests into tensors. */
export function makesTensors({ name }: Decorator): boolean {
  return name === "batch" || name === "sample";
}

/** True for a decorator that gets requests instead of tensors. */
export function isRequestDecorator(decorator: Decorator): decorator is RequestDecorator {
  return decorator.name === "groupByKeys" || decorator.name === "fillOptionals";
}

/**
 * True for a callback that accepts requests with different sets of optional inputs in one batch: it splits the batch by
 * these sets, or fills in every missing input. False if an optional input has a variable shape, because then the
 * batcher decides which requests can be joined.
 */
export function takesMixedInputs(fn: unknown, { input }: ModelConfig): boolean {
  const optional = input.filter((one) => one.optional);
  if (optional.some(({ dims, isShapeTensor }) => isShapeTensor || dims.includes(-1))) return false;
  return requestDecoratorsOf(fn).some(
    (one) => one.name === "groupByKeys" || optional.every(({ name }) => Object.hasOwn(one.defaults, name)),
  );
}
