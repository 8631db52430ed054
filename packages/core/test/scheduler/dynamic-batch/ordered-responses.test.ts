import { describe, expect, it } from "vitest";
import type { InferenceRequest } from "../../../src/request/inference-request.js";
import { OrderedResponses } from "../../../src/scheduler/dynamic-batch-scheduler.js";
import { outcomeText, requestWith } from "../../support/requests.js";

const response = { modelName: "m", modelVersion: "1", id: "", parameters: {}, outputs: new Map() };

/** Admitted requests, and what was delivered so far. */
function admitted(count: number): { requests: InferenceRequest[]; delivered: string[] } {
  const ordered = new OrderedResponses();
  const delivered: string[] = [];
  const requests = Array.from({ length: count }, (_, i) =>
    requestWith({}, { onResponse: (outcome) => delivered.push(`${i} ${outcomeText(outcome)}`) }),
  );
  for (const request of requests) {
    ordered.admit(request);
    request.startExecution();
  }
  return { requests, delivered };
}

describe("ordered responses", () => {
  it("are held back until all earlier requests are answered", () => {
    const { requests, delivered } = admitted(3);
    requests[2]!.respond(response);
    requests[1]!.respond(response);
    expect(delivered).toEqual([]);
    requests[0]!.respond(response);
    expect(delivered).toEqual(["0 response", "1 response", "2 response"]);
  });

  it("do not wait for a cancelled request", () => {
    const { requests, delivered } = admitted(3);
    requests[1]!.respond(response);
    requests[0]!.cancel();
    expect(delivered).toEqual(["1 response", "0 CANCELLED the request was cancelled"]);
  });

  it("are passed on as they are produced once it is the turn of their request", () => {
    const { requests, delivered } = admitted(2);
    requests[1]!.respond(response, false);
    requests[0]!.respond(response, false);
    expect(delivered).toEqual(["0 response"]);
    requests[0]!.finish();
    requests[1]!.respond(response, false);
    expect(delivered).toEqual(["0 response", "0 nothing", "1 response", "1 response"]);
  });

  it("are replaced by an error at once when their request is cancelled while they are held back", () => {
    const { requests, delivered } = admitted(3);
    requests[2]!.respond(response);
    requests[1]!.respond(response);
    expect(requests[1]!.cancel()).toBe(true);
    expect(delivered).toEqual(["1 CANCELLED the request was cancelled"]);
    requests[0]!.respond(response);
    expect(delivered).toEqual(["1 CANCELLED the request was cancelled", "0 response", "2 response"]);
    expect(requests[2]!.cancel()).toBe(false);
  });

  it("are delivered once, even if the model responds again while the first is held back", () => {
    const { requests, delivered } = admitted(2);
    expect(requests[1]!.respond(response)).toBe(true);
    expect(requests[1]!.respond(response)).toBe(false);
    requests[0]!.respond(response);
    expect(delivered).toEqual(["0 response", "1 response"]);
  });

  it("keep their order when a delivery cancels other requests", () => {
    const ordered = new OrderedResponses();
    const delivered: string[] = [];
    const requests: InferenceRequest[] = Array.from({ length: 4 }, (_, i) =>
      requestWith(
        {},
        {
          onResponse: (outcome) => {
            delivered.push(`${i} ${outcomeText(outcome)}`);
            if (i === 0) requests[1]!.cancel();
          },
        },
      ),
    );
    for (const request of requests) {
      ordered.admit(request);
      request.startExecution();
    }
    for (const request of requests.slice(2)) request.respond(response);
    requests[0]!.respond(response);
    expect(delivered).toEqual([
      "0 response",
      "1 CANCELLED the request was cancelled",
      "2 response",
      "3 response",
    ]);
  });
});
