import { once } from "node:events";
import { TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { withInputs } from "../../src/instance/callback-context.js";
import type { RequestTrace } from "../../src/observe/request-trace.js";
import { InferenceRequest, type RequestObserver } from "../../src/request/inference-request.js";
import { outcomeText, requestWith } from "../support/requests.js";
import { ones } from "../support/tensors.js";

const response = { modelName: "m", modelVersion: "1", id: "", parameters: {}, outputs: new Map() };

const endings: Record<string, (request: InferenceRequest) => boolean> = {
  answer: (request) => request.respond(response),
  error: (request) => request.respondError(new TritonError("INTERNAL", "broke")),
  cancellation: (request) => request.cancel(),
  "end without a response": (request) => request.finish(),
};

function watched(): { request: InferenceRequest; outcomes: string[]; settled: (string | undefined)[] } {
  const outcomes: string[] = [];
  const settled: (string | undefined)[] = [];
  const request = requestWith(
    { x: ones(1, 2) },
    { onResponse: (outcome, final) => outcomes.push(`${outcomeText(outcome)}${final ? " final" : ""}`) },
  );
  request.observe({ settled: (_, error) => void settled.push(error?.code) });
  return { request, outcomes, settled };
}

describe("a request", () => {
  for (const [first, end] of Object.entries(endings)) {
    for (const [second, tryAgain] of Object.entries(endings)) {
      it(`settles once: after its ${first}, ${second} has no effect`, () => {
        const { request, outcomes, settled } = watched();
        expect(end(request)).toBe(true);
        expect(tryAgain(request)).toBe(false);
        expect(outcomes).toHaveLength(1);
        expect(settled).toHaveLength(1);
      });
    }
  }

  it("delivers responses until one is final", () => {
    const { request, outcomes } = watched();
    request.respond(response, false);
    request.respond(response, false);
    request.finish();
    expect(outcomes).toEqual(["response", "response", "nothing final"]);
  });

  it("is identified by its id in error texts", () => {
    expect(requestWith({}, { id: "a7" }).logPrefix).toBe("[request id: a7] ");
    expect(requestWith({}).logPrefix).toBe("[request id: <id_unknown>] ");
  });

  it("counts as one row when the model has no batch axis", () => {
    expect(requestWith({}).rows).toBe(1);
  });
});

describe("a cancelled request", () => {
  it("leaves its queue, drops its tensors and aborts its signal", () => {
    const { request, outcomes, settled } = watched();
    const removed: unknown[] = [];
    request.holder = { remove: (one) => removed.push(one) };
    const { signal } = request;
    const reason = new TritonError("UNAVAILABLE", "enough");
    request.cancel(reason);
    expect(removed).toEqual([request]);
    expect([request.inputs.size, request.holder, signal.aborted, signal.reason]).toEqual([
      0,
      undefined,
      true,
      reason,
    ]);
    expect([outcomes, settled]).toEqual([["UNAVAILABLE enough final"], ["UNAVAILABLE"]]);
  });

  it("keeps its tensors while an instance executes it", () => {
    const { request } = watched();
    request.startExecution();
    request.cancel();
    expect(request.inputs.size).toBe(1);
  });

  it("notifies an executor that runs elsewhere", () => {
    const { request } = watched();
    let told = 0;
    request.startExecution({ givenUp: () => told++ });
    request.cancel();
    expect(told).toBe(1);
  });

  it("has an aborted signal even when the signal is read later", () => {
    const { request } = watched();
    request.cancel();
    expect(request.signal.aborted).toBe(true);
    expect(request.signal.reason).toMatchObject({ code: "CANCELLED" });
  });
});

describe("those who observe a request", () => {
  /** An observer that notes what it hears. */
  const noting = (name: string, log: string[]): RequestObserver => ({
    outputs: () => void log.push(`${name} outputs`),
    computed: () => void log.push(`${name} computed`),
    settled: (_, error) => void log.push(`${name} settled ${error?.code ?? "well"}`),
    released: (_, again) => void log.push(`${name} released${again ? " again" : ""}`),
  });

  function observed(...names: readonly string[]) {
    const log: string[] = [];
    const request = requestWith(
      { x: ones(1, 2) },
      { onResponse: (outcome) => void log.push(outcomeText(outcome)) },
    );
    for (const name of names) request.observe(noting(name, log));
    return { request, log };
  }

  it("hear of it in the order in which they began, before its handler and its release", () => {
    const { request, log } = observed("model", "cache");
    request.startExecution({
      answered: (answered) => {
        log.push("runner answered");
        answered.computed(1, 2, 3);
      },
      givenUp: () => log.push("runner given up"),
    });
    request.made(new Map());
    request.respond(response);
    request.release(false);
    expect(log).toEqual([
      ...["model outputs", "cache outputs", "runner answered", "model computed", "cache computed"],
      ...["model settled well", "cache settled well", "response", "model released", "cache released"],
    ]);
  });

  it("hear that it was given up before whoever runs it, and of its release once it does not run", () => {
    const waiting = observed("model");
    waiting.request.cancel();
    const running = observed("model");
    running.request.startExecution({ givenUp: () => running.log.push("runner given up") });
    running.request.cancel();
    expect(waiting.log).toEqual(["model settled CANCELLED", expect.any(String), "model released"]);
    expect(running.log).toEqual(["model settled CANCELLED", "runner given up", expect.any(String)]);
  });

  it("hear nothing of what was under way when they began, nor of what comes after they left", () => {
    const { request, log } = observed();
    const leaves: RequestObserver = {
      released: () => {
        log.push("leaves");
        request.ignore(leaves);
        request.observe(noting("later", log));
      },
    };
    request.observe(leaves);
    request.startExecution();
    request.release(true);
    request.release(false);
    expect(log).toEqual(["leaves", "later released"]);
  });

  it("are not asked by a request that comes back whether its model can be told to stop", () => {
    const { request } = observed();
    expect(request.askToStop()).toBe(false);
    request.startExecution({ givenUp: () => {}, askedToStop: () => true });
    expect(request.askToStop()).toBe(true);
    request.release(true);
    expect(request.askToStop()).toBe(false);
  });
});

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
