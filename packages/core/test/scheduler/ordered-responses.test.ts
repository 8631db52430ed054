import { describe, expect, it } from "vitest";
import type { InferenceRequest } from "../../src/request/inference-request.js";
import { OrderedResponses } from "../../src/scheduler/dynamic-batch/ordered-responses.js";
import { outcomeText, requestWith } from "../support/requests.js";

const response = { modelName: "m", modelVersion: "1", id: "", parameters: {}, outputs: new Map() };

/** Requests that have their place, and what was delivered so far. */
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

describe("answers in order", () => {
  it("are held back until those of all earlier requests are out", () => {
    const { requests, delivered } = admitted(3);
    requests[2]!.respond(response);
    requests[1]!.respond(response);
    expect(delivered).toEqual([]);
    requests[0]!.respond(response);
    expect(delivered).toEqual(["0 response", "1 response", "2 response"]);
  });

  it("are not held up by a request that is given up", () => {
    const { requests, delivered } = admitted(3);
    requests[1]!.respond(response);
    requests[0]!.cancel();
    expect(delivered).toEqual(["1 response", "0 CANCELLED the request was cancelled"]);
  });

  it("of one request with several responses come as they are made once it is its turn", () => {
    const { requests, delivered } = admitted(2);
    requests[1]!.respond(response, false);
    requests[0]!.respond(response, false);
    expect(delivered).toEqual(["0 response"]);
    requests[0]!.finish();
    requests[1]!.respond(response, false);
    expect(delivered).toEqual(["0 response", "0 nothing", "1 response", "1 response"]);
  });
});
