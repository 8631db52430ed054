import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import type { Defaults, RequestDecorator } from "../callable/decorators.js";
import { defaultTensors } from "../callable/default-tensors.js";

import { repeatRows } from "../tensor/repeat-rows.js";
import type { CallbackExecution, ExecutableRequest, ExecutionResult } from "./executor.js";
import { PartOfExecution } from "./part-of-execution.js";
import { RequestView } from "./request-view.js";

type Results = readonly ExecutionResult[] | undefined;
type Run = (execution: CallbackExecution) => Promise<Results>;

/**
 * Runs a batch through the decorators that see its requests, outermost first, and passes their result to `run`. It
 * calls `run` once, or once for each group that a decorator makes.
 *
 * @returns a result for each request of the batch, or undefined if the execution is answered as it runs
 */
export async function runDecorated(
  decorators: readonly RequestDecorator[],
  config: ModelConfig,
  execution: CallbackExecution,
  run: Run,
): Promise<Results> {
  const [decorator, ...inner] = decorators;
  if (decorator === undefined) return run(execution);
  const next: Run = (part) => runDecorated(inner, config, part, run);
  return decorator.name === "groupByKeys"
    ? runGroups(execution, next)
    : next(filled(execution, decorator.defaults, config));
}

async function runGroups(execution: CallbackExecution, run: Run): Promise<Results> {
  const groups = groupsOf(execution.requests);
  if (groups.length === 1) return run(execution);
  const results: ExecutionResult[] = [];
  for (const [i, indices] of groups.entries()) {
    const part = new PartOfExecution(execution, indices, { first: i === 0, last: i === groups.length - 1 });
    try {
      const own = await run(part);
      for (const [at, index] of indices.entries()) if (own !== undefined) results[index] = own[at]!;
    } catch (thrown) {
      // An error of one group does not affect the others.
      const error = TritonError.from(thrown);
      for (const [at, index] of indices.entries()) {
        if (execution.decoupled) part.sendError(at, error, true);
        else results[index] = error;
      }
    }
  }
  return execution.decoupled ? undefined : results;
}

/** Groups the positions of requests with the same inputs; groups and positions are in order. */
function groupsOf(requests: readonly ExecutableRequest[]): number[][] {
  const groups = new Map<string, number[]>();
  for (const [index, { inputs }] of requests.entries()) {
    const key = JSON.stringify([...inputs.keys()].sort());
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [index]);
    else group.push(index);
  }
  return [...groups.values()];
}

function filled(execution: CallbackExecution, defaults: Defaults, config: ModelConfig): CallbackExecution {
  const { requests } = execution;
  const names = Object.keys(defaults);
  if (requests.every(({ inputs }) => names.every((name) => inputs.has(name)))) return execution;
  const { tensors } = defaultTensors(defaults, config);
  const withDefaults = requests.map((request): ExecutableRequest => {
    const inputs = new Map(request.inputs);
    for (const [name, tensor] of tensors) {
      if (inputs.has(name)) continue;
      inputs.set(name, repeatRows(tensor, config.maxBatchSize > 0 ? request.rows : undefined));
    }
    return new RequestView(request, inputs, request.rows, request);
  });
  const all = requests.map((_, index) => index);
  return new PartOfExecution(execution, all, { first: true, last: true }, withDefaults);
}
