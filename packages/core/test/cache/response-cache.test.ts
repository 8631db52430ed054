import { describe, expect, it } from "vitest";
import { cacheKey } from "../../src/cache/response-cache.js";
import { InferenceRequest } from "../../src/request/inference-request.js";

/** Key of a request for a model with the outputs `y` and `z`. */
function keyFor(requestedOutputs: readonly string[]): string {
  const request = new InferenceRequest("m", { inputs: new Map(), requestedOutputs });
  return cacheKey("m", "1", request, ["y", "z"]);
}

describe("a response cache key", () => {
  it("is the same for all outputs, named or not", () => {
    expect(new Set([[], ["y", "z"], ["z", "y"], ["y", "z", "y"]].map(keyFor)).size).toBe(1);
  });

  it("distinguishes a subset of the outputs from other subsets and from all", () => {
    expect(new Set([[], ["y"], ["z"]].map(keyFor)).size).toBe(3);
    expect(keyFor(["y", "y"])).toBe(keyFor(["y"]));
  });
});
