import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { withInputs } from "../../src/instance/callback-context.js";
import type { RequestTrace } from "../../src/observe/request-trace.js";
import { InferenceRequest } from "../../src/request/inference-request.js";
import { requestWith } from "../support/requests.js";
import { ones } from "../support/tensors.js";

describe("a request with other inputs", () => {
  const inputs = new Map([["x", ones(3, 2)]]);
  const copyOf = (request: InferenceRequest) => withInputs(request, inputs, 3);

  it("has nothing that answers it, gives it up or changes it", () => {
    const request = requestWith({ x: ones(1, 2) }, { id: "a" });
    const copy = copyOf(request);
    expect([copy.id, copy.inputs, copy.rows]).toEqual(["a", inputs, 3]);
    for (const name of ["respond", "cancel", "finish", "release", "observe", "holder", "pause"]) {
      expect(name in request).toBe(true);
      expect(name in copy).toBe(false);
    }
    expect(Object.values(copy).some((value) => value instanceof InferenceRequest)).toBe(false);
  });

  it("keeps its tensors while the request is given up", () => {
    const request = requestWith({ x: ones(1, 2) });
    const copy = copyOf(request);
    request.cancel();
    expect(copy.inputs.size).toBe(1);
  });

  it("has a signal that aborts when the request is given up", () => {
    const request = requestWith({ x: ones(1, 2) });
    const { signal } = copyOf(request);
    request.cancel();
    expect(signal.aborted).toBe(true);
  });
});

describe("a request whose inputs have been used", () => {
  const trace = { within: <T>(fn: () => T) => fn() } as unknown as RequestTrace;

  it.each([
    ["tells its sender", undefined, 1],
    ["does not tell its sender while it is traced, because traces keep tensors", trace, 0],
  ])("%s", (_, trace, times) => {
    let told = 0;
    const request = requestWith({ x: ones(1, 2) }, { trace, onInputsUsed: () => void told++ });
    request.inputsUsed(new Map());
    expect(told).toBe(times);
  });

  it("is answered although its sender throws", async () => {
    const warned = once(process, "warning");
    const request = requestWith(
      { x: ones(1, 2) },
      {
        onInputsUsed: () => {
          throw new Error("cannot detach");
        },
      },
    );
    request.inputsUsed(new Map());
    expect(String(await warned)).toContain("cannot detach");
  });
});
