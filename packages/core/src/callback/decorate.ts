import type { DataType, ModelConfig, TensorValue } from "@tritonjs/protocol";
import { type AnyInferFunc, callableStyle, generates, isGenerator, styleOf } from "./infer-func.js";

/** The context argument of a method decorator (TC39 decorators), reduced to the members used here. */
export interface MethodDecoratorContext {
  readonly kind: "method";
  readonly name: string | symbol;
  readonly static: boolean;
  addInitializer(initializer: (this: never) => void): void;
}

/** The two forms of a method decorator. The method keeps its type. */
export interface DecoratesMethod {
  /** A standard decorator. */
  <F extends (...args: never[]) => unknown>(method: F, context: MethodDecoratorContext): F;
  /** A decorator of TypeScript's `experimentalDecorators`. */
  <F extends (...args: never[]) => unknown>(
    target: object,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<F>,
  ): TypedPropertyDescriptor<F>;
}

/** Arguments of a decorator: a function alone if it is called as a wrapper, otherwise those of a method decorator. */
export type DecoratorArguments =
  | readonly [fn: unknown, context?: MethodDecoratorContext]
  | readonly [target: object, name: string | symbol, descriptor: PropertyDescriptor | undefined];

/** A function with the arguments of any callback: requests or tensors, then the context. */
type Wrapper = (this: unknown, first: never, context: never) => unknown;

/**
 * Wraps a function in a decorator. As a method decorator it also binds the method to its object, so that `inferFunc:
 * model.run` needs no arrow function. TypeScript's `experimentalDecorators` call it with a name as the second argument.
 *
 * @param wrapperOf makes the function that is called instead of `fn`; without it, the decorator does its work elsewhere
 * @throws Error when the decorators cannot be combined in this order.
 */
export function decorate(
  decorator: Decorator,
  given: DecoratorArguments,
  wrapperOf?: (fn: Wrapper) => Wrapper,
): unknown {
  if (isClassic(given)) {
    const [, name, descriptor] = given;
    const fn = descriptor === undefined ? undefined : methodOf(descriptor);
    if (typeof fn !== "function") {
      throw new TypeError(
        `@${decorator.name}: expected a method to decorate, got property '${String(name)}'`,
      );
    }
    const { call, marked } = wrap(decorator, fn as Wrapper, wrapperOf);
    return accessorOf(name, { method: marked(call), boundTo: (owner) => marked(call.bind(owner)) });
  }
  const [fn, context] = given;
  if (typeof fn !== "function")
    throw new TypeError(`@${decorator.name}: expected a function to decorate, got ${typeof fn}`);
  const { call, marked } = wrap(decorator, fn as Wrapper, wrapperOf);
  context?.addInitializer(function (this: object) {
    // Runs once for each decorator of the method, the outermost last.
    Object.defineProperty(this, context.name, {
      value: marked(call.bind(this)),
      configurable: true,
      writable: true,
    });
  });
  return marked(
    context === undefined ? (first: never, inferContext: never) => call(first, inferContext) : call,
  );
}

function isClassic(given: DecoratorArguments): given is ClassicArguments {
  return typeof given[1] === "string" || typeof given[1] === "symbol";
}

/** The function that a decorator makes of another, and what records its decorators on each copy of it. */
function wrap(decorator: Decorator, fn: Wrapper, wrapperOf: ((fn: Wrapper) => Wrapper) | undefined) {
  if (styleOf(fn as AnyInferFunc) === "stepwise") {
    throw new Error(`The @${decorator.name} decorator cannot be used with a stepwise callback.`);
  }
  const inner = decoratorsOf(fn);
  checkOrder(decorator, inner);
  const decorators = [decorator, ...inner];
  const style = decorators.find(makesTensors)?.name;
  const generator = isGenerator(fn);
  const marked = (target: object) => {
    markDecorators(target, decorators);
    if (style !== undefined) Object.defineProperty(target, callableStyle, { value: style });
    if (generator) Object.defineProperty(target, generates, { value: true });
    return target;
  };
  const call: Wrapper =
    wrapperOf?.(fn) ??
    function (this: unknown, first: never, inferContext: never) {
      return fn.call(this, first, inferContext);
    };
  return { call, marked };
}

/**
 * Checks that decorators of requests are outside `batch` or `sample`, which turn requests into tensors, and decorators
 * of tensors inside.
 */
function checkOrder(decorator: Decorator, inner: readonly Decorator[]): void {
  const { name } = decorator;
  if (isRequestDecorator(decorator)) {
    const [next] = inner;
    if (next !== undefined && !isRequestDecorator(next) && !makesTensors(next)) {
      throw new Error(afterBatch(next));
    }
    return;
  }
  const outer = inner.find((one) => isRequestDecorator(one));
  if (makesTensors(decorator)) {
    const twice = inner.find(makesTensors);
    if (twice !== undefined)
      throw new Error(`@${name} and @${twice.name} cannot decorate the same callback.`);
    if (outer !== undefined) {
      throw new Error(`The @${outer.name} decorator must be used before the @${name} decorator.`);
    }
    return;
  }
  if (outer !== undefined || inner.some(makesTensors)) {
    throw new Error(afterBatch(decorator));
  }
}

export function afterBatch({ name }: Decorator): string {
  return `The @${name} decorator must be used after the @batch decorator.`;
}

export type Defaults = Readonly<Record<string, TensorValue<DataType>>>;

type Decorator =
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

export function decoratorsOf(fn: unknown): readonly Decorator[] {
  return (fn as { [mark]?: readonly Decorator[] } | undefined)?.[mark] ?? NONE;
}

function markDecorators(fn: object, decorators: readonly Decorator[]): void {
  Object.defineProperty(fn, mark, { value: decorators });
}

export function requestDecoratorsOf(fn: unknown): readonly RequestDecorator[] {
  const decorators = decoratorsOf(fn);
  return decorators.some(isRequestDecorator) ? decorators.filter(isRequestDecorator) : NO_REQUEST_DECORATORS;
}

export function makesTensors({ name }: Decorator): boolean {
  return name === "batch" || name === "sample";
}

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

/*
 * Methods decorated with TypeScript's `experimentalDecorators`. Such a decorator gets the prototype, the name and the
 * property descriptor of the method. It cannot run code for each object. So it replaces the method by an accessor that
 * binds the method when it is read from an object.
 */

/** Arguments of a classic method decorator: the prototype, or the class of a static method, then name and property. */
type ClassicArguments = readonly [
  target: object,
  name: string | symbol,
  descriptor: PropertyDescriptor | undefined,
];

interface UnboundMethod {
  readonly method: object;
  readonly boundTo: (owner: object) => object;
}

/** Key under which an accessor keeps its method, for the next decorator. Copies of the library share it. */
const methodKey = Symbol.for("tritonjs.classicMethod");

/** The method of a property, before or after other decorators; undefined for a property that is not a method. */
function methodOf({ value, get }: PropertyDescriptor): unknown {
  return get === undefined ? value : (get as { readonly [methodKey]?: unknown })[methodKey];
}

/** The property of a decorated method. Each object gets its own bound method, which stays the same. */
function accessorOf(name: string | symbol, { method, boundTo }: UnboundMethod): PropertyDescriptor {
  const methods = new WeakMap<object, object>();
  function get(this: object): object {
    if (isPrototype(this)) return method;
    let own = methods.get(this);
    if (own === undefined) {
      own = boundTo(this);
      methods.set(this, own);
    }
    return own;
  }
  Object.defineProperty(get, methodKey, { value: method });
  return {
    configurable: true,
    enumerable: false,
    get,
    // Methods can be replaced, for example by the spies of test runners.
    set(this: object, value: unknown) {
      Object.defineProperty(this, name, { value, configurable: true, enumerable: true, writable: true });
    },
  };
}

function isPrototype(owner: object): boolean {
  return Object.hasOwn(owner, "constructor") && owner.constructor.prototype === owner;
}
