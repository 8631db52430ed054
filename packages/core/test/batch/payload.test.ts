import { TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { Payload } from "../../src/batch/payload.js";
import { queuedRequest, requestWith } from "../support/requests.js";
import { ones } from "../support/tensors.js";

describe("a payload", () => {
  it("counts the rows of its requests and keeps the oldest waiting time", () => {
    const payload = new Payload();
    payload.add(queuedRequest(2, 7));
    payload.add(queuedRequest(3, 5));
    expect([payload.batchSize, payload.oldestQueueStart]).toEqual([5, 5]);
  });

  it("drops a cancelled request and reports when the last one has left", () => {
    const payload = new Payload();
    const [first, second] = [queuedRequest(2), queuedRequest(3)];
    let emptied = 0;
    payload.onEmpty = () => emptied++;
    payload.add(first);
    payload.add(second);
    first.cancel();
    expect([payload.requests, payload.batchSize, emptied]).toEqual([[second], 3, 0]);
    second.cancel();
    expect([payload.requests, payload.batchSize, emptied]).toEqual([[], 0, 1]);
  });

  it("keeps executing requests, even cancelled ones", () => {
    const payload = new Payload();
    const request = queuedRequest(2);
    payload.add(request);
    request.startExecution();
    request.cancel();
    expect(payload.requests).toEqual([request]);
  });

  it("takes over the requests of another payload", () => {
    const [payload, other] = [new Payload(), new Payload()];
    const [first, second] = [queuedRequest(1, 3), queuedRequest(2, 1)];
    payload.add(first);
    other.add(second);
    payload.absorb(other);
    expect([payload.requests, payload.batchSize, payload.oldestQueueStart]).toEqual([[first, second], 3, 1]);
    expect([other.requests, other.batchSize]).toEqual([[], 0]);
    second.cancel();
    expect(payload.batchSize).toBe(1);
  });

  it("fails all its requests with its own error", () => {
    const outcomes: unknown[] = [];
    const payload = new Payload();
    for (let i = 0; i < 3; i++) {
      payload.add(requestWith({ x: ones(1, 2) }, { onResponse: (outcome) => outcomes.push(outcome) }));
    }
    const error = new TritonError("UNAVAILABLE", "gone");
    payload.fail(error);
    expect(outcomes).toEqual([error, error, error]);
    expect(payload.requests).toEqual([]);
  });
});
