import { describe, it } from "vitest";
import { expectPromisedOutput } from "../support/example-run.js";

describe("the serving example", () => {
  it.each([
    "decorators",
    "tree-ensemble",
    "response-cache",
    "rollout",
    "rate-limiter",
    "priorities",
    "ragged-batches",
    "iterative-sequences",
  ])("%s runs to its end and prints what its README promises", (name) => expectPromisedOutput(name));
});
