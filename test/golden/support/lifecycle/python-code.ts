import { TritonError } from "@tritonjs/core";
import { type Behaviour, toInferFunc } from "../behaviours/behaviour.js";
import type { Array_ } from "../behaviours/tensors.js";
import type { PlayPython } from "../played-python.js";

/**
 * The Python models of the life-cycle scenarios: one sleeps for as many seconds as its input says, others do not
 * load.
 */
export const pythonOfScenarios: PlayPython = (code) => {
  const raised = /^raise RuntimeError\("([^"]*)"\)/m.exec(code);
  if (raised !== null) throw new TritonError("INTERNAL", `RuntimeError: ${raised[1]}`);
  if (code.startsWith("def x(:")) {
    throw new TritonError("INTERNAL", "SyntaxError: invalid syntax (model.py, line 1)");
  }
  const loading = /def initialize[\s\S]*?raise RuntimeError\("([^"]*)"\)/.exec(code);
  if (loading !== null) throw new TritonError("INTERNAL", `RuntimeError: ${loading[1]}`);
  return (model) => toInferFunc(sleepAndRepeat, model);
};

const sleepAndRepeat: Behaviour = async ({ inputs }, { sleep }) => {
  const input = inputs.INPUT0 as Array_;
  await sleep(1000 * Number(input.data[0]));
  return { OUTPUT0: input };
};
