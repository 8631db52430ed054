import {
  type Decorator,
  decoratorsOf,
  isRequestDecorator,
  makesTensors,
  markDecorators,
} from "./decorators.js";
import { type AnyInferFunc, callableStyle, generates, isGenerator, styleOf } from "./infer-func.js";

/** What a decorator of a method is given, as far as it is used here (TC39 decorators). */
export interface MethodDecoratorContext {
  readonly kind: "method";
  readonly name: string | symbol;
  readonly static: boolean;
  addInitializer(initializer: (this: never) => void): void;
}

/** A function of a callback's arguments, whatever they are: requests or tensors, then the context. */
export type Wrapper = (this: unknown, first: never, context: never) => unknown;

/**
 * Puts a decorator around a function. As a method decorator it also binds the method to its object, so that
 * `inferFunc: model.run` needs no arrow function around it.
 *
 * @param wrapper called instead of `fn`; `fn` itself when the decorator does its work elsewhere
 * @throws Error when the decorators do not go together in this order.
 */
export function decorate(
  decorator: Decorator,
  fn: unknown,
  context: MethodDecoratorContext | undefined,
  wrapper?: Wrapper,
): unknown {
  if (typeof fn !== "function")
    throw new TypeError(`@${decorator.name}: expected a function to decorate, got ${typeof fn}`);
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
  const call =
    wrapper ??
    function (this: unknown, first: never, inferContext: never) {
      return fn.call(this, first, inferContext);
    };
  context?.addInitializer(function (this: object) {
    // Runs for each decorator of the method, for the outermost last.
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

/** Requests become tensors at `batch` or `sample`: what needs either stands on the right side of them. */
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

/** What is wrong with a decorator of tensors that gets requests. */
export function afterBatch({ name }: Decorator): string {
  return `The @${name} decorator must be used after the @batch decorator.`;
}
