import { stepwiseModelOf } from "../../callable/stepwise.js";
import type { CallbackExecution } from "../executor.js";
import type { Callable } from "../run-callable.js";
import { StepLoop } from "./step-loop.js";

/** One loop for each callback of an instance. */
const loops = new WeakMap<Callable, StepLoop>();

/** Passes the requests of an execution to the loop of a stepwise callback, which answers them from then on. */
export function runStepwise(callable: Callable, execution: CallbackExecution): void {
  let loop = loops.get(callable);
  if (loop === undefined) {
    loop = new StepLoop(stepwiseModelOf(callable.fn), callable.info);
    loops.set(callable, loop);
  }
  loop.add(execution);
}
