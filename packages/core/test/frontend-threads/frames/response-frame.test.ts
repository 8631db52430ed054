import type { InferenceResponse } from "@tritonjs/core/frontend";
import { NO_PARAMETERS, Tensor, TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { OutgoingFrame } from "../../../src/frontend-threads/frames.js";
import { RESPONSE, readOutcome, writeResponse } from "../../../src/frontend-threads/request-frames.js";
import { freeWhenSent } from "../../../src/request/request-memory.js";
import { pass } from "./exchange.js";

const request = { id: "a", modelName: "m", modelVersion: "1", config: { output: [{ name: "y" }] } as never };
const frame = new OutgoingFrame();

function received(outcome: InferenceResponse | TritonError | undefined, final = true, refused = false) {
  writeResponse(frame, 3, request, outcome, final, refused);
  const incoming = pass(frame);
  return { flags: incoming.flags, outcome: readOutcome(incoming, request) };
}

describe("a response that goes to a thread", () => {
  it("keeps its outputs, and the names that differ from those of the request", () => {
    const outputs = new Map([["y", Tensor.fromElements("BYTES", [2], [Buffer.from("ab"), Buffer.from("")])]]);
    const response = { id: "b", modelName: "other", modelVersion: "2", parameters: { p: 1 }, outputs };
    const { outcome } = received(response) as { outcome: InferenceResponse };
    expect([outcome.id, outcome.modelName, outcome.modelVersion, { ...outcome.parameters }]).toEqual([
      "b",
      "other",
      "2",
      { p: 1 },
    ]);
    expect(outcome.outputs.get("y")?.elements).toEqual([
      new Uint8Array(Buffer.from("ab")),
      new Uint8Array(0),
    ]);
  });

  it("copies a large output, because the model may keep it", () => {
    const elements = new Float32Array(20_000).fill(2);
    const outputs = new Map([["y", Tensor.fromElements("FP32", [20_000], elements)]]);
    const { outcome } = received({ ...request, parameters: NO_PARAMETERS, outputs });
    const { bytes } = (outcome as InferenceResponse).outputs.get("y")!;
    expect(Buffer.compare(bytes, new Uint8Array(elements.buffer))).toBe(0);
    // The copy is freed when it has been sent.
    expect(freeWhenSent(new Uint8Array(elements.buffer))).toBeUndefined();
    freeWhenSent(bytes)!();
    expect([bytes.length, elements.length]).toEqual([0, 20_000]);
  });

  it("keeps code, reason, text and retry time of an error, and whether it is a refusal", () => {
    const error = new TritonError("UNAVAILABLE", "full", { reason: "QUEUE_FULL", retryAfterMs: 20 });
    const { flags, outcome } = received(error, true, true);
    expect(outcome).toMatchObject({
      code: "UNAVAILABLE",
      reason: "QUEUE_FULL",
      message: "full",
      retryAfterMs: 20,
    });
    expect(flags & RESPONSE.refused).not.toBe(0);
    expect(received(new TritonError("INTERNAL", "x")).outcome).not.toHaveProperty("retryAfterMs");
  });

  it("is undefined for an end without a response", () => {
    const { flags, outcome } = received(undefined);
    expect([outcome, flags & RESPONSE.final]).toEqual([undefined, RESPONSE.final]);
  });
});
