import { accessorOf, type ClassicArguments, methodOf } from "./classic-method.js";
import {
  type Decorator,
  decoratorsOf,
  isRequestDecorator,
  makesTensors,
  markDecorators,
} from "./decorators.js";
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
export type Wrapper = (this: unknown, first: never, context: never) => unknown;

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

/** Error text for a decorator of tensors that would get requests. */
export function afterBatch({ name }: Decorator): string {
  return `The @${name} decorator must be used after the @batch decorator.`;
}
