import type { TensorSpec } from "../config/tensor-spec.js";
import {
  callableStyle,
  generates,
  isGenerator,
  type StyledInferFunc,
  type TensorFunc,
} from "./infer-func.js";

/** What a decorator of a method is given, as far as it is used here (TC39 decorators). */
export interface MethodDecoratorContext {
  readonly kind: "method";
  readonly name: string | symbol;
  readonly static: boolean;
  addInitializer(initializer: (this: never) => void): void;
}

/**
 * Marks a function with the way it wants its requests. As a method decorator it also binds the method to its
 * object, so that `inferFunc: model.run` needs no arrow function around it.
 */
export function styled<I extends readonly TensorSpec[], O extends readonly TensorSpec[]>(
  style: "batch" | "sample",
  fn: TensorFunc<I, O>,
  context?: MethodDecoratorContext,
): StyledInferFunc<I, O> {
  const mark = (target: TensorFunc<I, O>) => {
    Object.defineProperty(target, callableStyle, { value: style });
    if (isGenerator(fn)) Object.defineProperty(target, generates, { value: true });
    return target as unknown as StyledInferFunc<I, O>;
  };
  if (context === undefined) return mark((inputs, inferContext) => fn(inputs, inferContext));
  context.addInitializer(function (this: object) {
    Object.defineProperty(this, context.name, {
      value: mark(fn.bind(this)),
      configurable: true,
      writable: true,
    });
  });
  return mark(fn);
}
