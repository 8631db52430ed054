import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { RequestView } from "../../src/instance/callback-context.js";
import type { RequestTrace } from "../../src/observe/request-trace.js";
import { PendingRequest } from "../../src/request/inference-request.js";
import { requestInfo } from "../../src/request/request-info.js";
import { requestWith } from "../support/requests.js";
import { ones } from "../support/tensors.js";

const viewOf = (request: PendingRequest) => new RequestView(request, request.inputs, request.rows, request);

/** All names by which something can be reached from an object: its own, and those of its prototypes. */
function namesOf(object: object): Set<string | symbol> {
  const names = new Set<string | symbol>();
  for (let at = object; at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Reflect.ownKeys(at)) names.add(name);
  }
  return names;
}

describe("a request as executors see it", () => {
  it("has nothing that answers it, gives it up or changes it", () => {
    const request = requestWith({ x: ones(1, 2) });
    const names = namesOf(viewOf(request));
    const known = ["inputs", "rows", "signal", "runInContext", "constructor"];
    expect(names).toEqual(new Set([...Object.keys(requestInfo(request)), ...known, "traceparent"]));
    for (const name of ["respond", "cancel", "finish", "release", "observe", "given", "holder", "pause"]) {
      expect(name in request).toBe(true);
      expect(names.has(name)).toBe(false);
    }
    expect(Object.values(viewOf(request)).some((value) => value instanceof PendingRequest)).toBe(false);
  });

  it("keeps its tensors while the request is given up", () => {
    const request = requestWith({ x: ones(1, 2) });
    const view = viewOf(request);
    request.cancel();
    expect(view.inputs.size).toBe(1);
  });

  it("has a signal that aborts when the request is given up", () => {
    const request = requestWith({ x: ones(1, 2) });
    const { signal } = viewOf(request);
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
    request.inputsUsed();
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
    request.inputsUsed();
    expect(String(await warned)).toContain("cannot detach");
  });
});
