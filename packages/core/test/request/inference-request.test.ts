import { describe, expect, it } from "vitest";
import { TritonError } from "../../src/errors/triton-error.js";
import type { InferenceRequest } from "../../src/request/inference-request.js";
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
  request.onSettled = (error) => settled.push(error?.code);
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
    request.onCancel = () => told++;
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
