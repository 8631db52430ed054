import { Tensor } from "@tritonjs/core";
import type { Execution, Executor } from "@tritonjs/core/backend";
import { type Forest, readForest, vote } from "./forest.js";

/** One instance of a forest. */
export class ForestExecutor implements Executor {
  /** The executor runs no native code, so it can be interrupted. */
  readonly mustFinish = false;
  readonly details: Record<string, string> = {};
  readonly #path: string;
  #forest: Forest | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  async start(): Promise<void> {
    this.#forest = readForest(this.#path);
    this.details.trees = String(this.#forest.trees.length);
  }

  /** The requests are already checked: each has its input, with the data type and shape of the configuration. */
  async execute(execution: Execution) {
    const forest = this.#forest!;
    execution.inputsReady();
    const results = execution.requests.map(({ inputs, rows }) => {
      const shares = vote(forest, rows, inputs.get("features")!.elements as Float32Array);
      return new Map([["votes", Tensor.fromElements("FP32", [rows, forest.classes], shares)]]);
    });
    execution.outputsReady();
    return results;
  }

  async stop(): Promise<void> {
    this.#forest = undefined;
  }
}
