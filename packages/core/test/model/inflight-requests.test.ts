import { TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { InflightRequests } from "../../src/model/model-requests.js";
import { InferenceRequest } from "../../src/request/inference-request.js";

const request = (id: string, told: string[] = []) =>
  new InferenceRequest("m", { id, inputs: new Map() }, { receive: () => void told.push(id) });

describe("in-flight requests", () => {
  it("are counted wherever in the list they leave", () => {
    const inflight = new InflightRequests();
    const [a, b, c, d] = ["a", "b", "c", "d"].map((id) => request(id));
    for (const one of [a!, b!, c!, d!]) inflight.add(one);
    const sizes = [b!, d!, a!, c!].map((one) => {
      inflight.delete(one);
      return inflight.size;
    });
    expect(sizes).toEqual([3, 2, 1, 0]);
  });

  it("are removed only once", () => {
    const inflight = new InflightRequests();
    const [a, b] = [request("a"), request("b")];
    inflight.add(a);
    inflight.add(b);
    inflight.delete(a);
    inflight.delete(a);
    expect(inflight.size).toBe(1);
  });

  it("drop their links to each other when they leave", () => {
    const inflight = new InflightRequests();
    const all = ["a", "b", "c"].map((id) => request(id));
    for (const one of all) inflight.add(one);
    for (const one of all) inflight.delete(one);
    expect(all.map((one) => [one.nextInflight, one.previousInflight])).toEqual(
      all.map(() => [undefined, undefined]),
    );
  });

  it("are cancelled in order of arrival, even when each removes itself meanwhile", () => {
    const inflight = new InflightRequests();
    const told: string[] = [];
    for (const id of ["a", "b", "c"]) {
      const one = request(id, told);
      one.observe({ settled: () => inflight.delete(one) });
      inflight.add(one);
    }
    inflight.cancel(new TritonError("UNAVAILABLE", "stopped"));
    expect([told, inflight.size]).toEqual([["a", "b", "c"], 0]);
  });

  it("report when none is left", async () => {
    const inflight = new InflightRequests();
    await inflight.empty();
    const a = request("a");
    inflight.add(a);
    const events: string[] = [];
    const empty = inflight.empty().then(() => events.push("empty"));
    events.push("leaves");
    inflight.delete(a);
    await empty;
    expect(events).toEqual(["leaves", "empty"]);
  });
});
