import type { ModelConfig } from "@tritonjs/protocol";
import { afterBatch } from "./decorate.js";
import { decoratorsOf, isRequestDecorator, makesTensors } from "./decorators.js";
import { defaultTensors } from "./default-tensors.js";
import { SAMPLE_TAKES_ONE } from "./sample.js";

/** Lists decorators of a callback that do not fit a model of this configuration. */
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
