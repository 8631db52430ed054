import { type ModelWarmup, TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { warmupRequests } from "../../src/model/live-instances.js";
import { InflightRequests } from "../../src/model/model-requests.js";
import { CallGraph } from "../../src/model/model-server.js";
import { parseVersion } from "../../src/model/pick-version.js";
import { ModelRegistry } from "../../src/model/registry.js";
import { InferenceRequest } from "../../src/request/inference-request.js";
import { modelConfig } from "../support/model-config.js";
import { thrownText } from "../support/requests.js";

const busy = (key: string) => ({ key, hasRoom: false, mayCallItself: true });

const idle = (key: string) => ({ key, hasRoom: true, mayCallItself: true });

describe("the call graph of models", () => {
  it("rejects a call to a busy model that is already in the chain of calls", () => {
    const graph = new CallGraph();
    const refusal = "INTERNAL circular call of models, which could wait forever: 'a/1' -> 'b/1' -> 'a/1'";
    expect(thrownText(() => graph.enter(["a/1", "b/1"], busy("a/1")))).toBe(refusal);
    graph.enter(["a/1", "b/1"], idle("a/1"))();
    const slotted = { ...idle("a/1"), mayCallItself: false };
    expect(thrownText(() => graph.enter(["a/1", "b/1"], slotted))).toBe(refusal);
  });

  it("rejects endless recursion", () => {
    const graph = new CallGraph();
    graph.enter(Array(31).fill("a/1"), idle("a/1"));
    expect(thrownText(() => graph.enter(Array(32).fill("a/1"), idle("a/1")))).toContain(
      "circular call of models",
    );
  });

  it("rejects waiting for a busy model that waits for the caller", () => {
    const graph = new CallGraph();
    graph.enter(["a/1"], busy("b/1"));
    const leave = graph.enter(["b/1"], busy("c/1"));
    expect(thrownText(() => graph.enter(["c/1"], busy("a/1")))).toBe(
      "UNAVAILABLE model 'c/1' cannot call model 'a/1', which is busy and waits for 'c/1': try again, or add instances",
    );
    graph.enter(["c/1"], idle("a/1"))();
    leave();
    expect(thrownText(() => graph.enter(["c/1"], busy("a/1")))).toBe("nothing was thrown");
  });
});

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

describe("a version in a request", () => {
  it("is parsed like a C++ number: leading space and sign, then digits", () => {
    expect(["3", " 7", "+2", "3x", "003", "0", "-0"].map((text) => Number(parseVersion(text)))).toEqual([
      3, 7, 2, 3, 3, 0, 0,
    ]);
  });

  it("means the highest version when it is empty", () => {
    expect(parseVersion("")).toBeUndefined();
  });

  it("must be a number", () => {
    expect(thrownText(() => parseVersion("x1"))).toBe(
      "INVALID_ARG failed to get model version from specified version string 'x1' (details: stol), " +
        "version should be an integral value > 0",
    );
    expect(thrownText(() => parseVersion("9223372036854775808"))).toContain("failed to get model version");
  });

  it("must not be negative", () => {
    expect(thrownText(() => parseVersion("-1"))).toBe(
      "INVALID_ARG invalid model version specified '-1' , version should be an integral value > 0",
    );
  });
});

describe("an unknown model", () => {
  it("is reported as NOT_FOUND", () => {
    expect(thrownText(() => new ModelRegistry().find("nope", ""))).toBe(
      "NOT_FOUND Request for unknown model: 'nope' is not found",
    );
  });
});

const config = modelConfig();

const noFile = () => {
  throw new TritonError("INTERNAL", "no such file");
};

function requestsOf(
  input: Partial<ModelWarmup["inputs"][string]>,
  { batchSize = 1, readFile = noFile as (file: string) => Uint8Array } = {},
) {
  const sample = {
    name: "w",
    count: 0,
    batchSize,
    inputs: { x: { dataType: "TYPE_INT32", dims: [2], ...input } },
  };
  return warmupRequests(config, sample, readFile, { receive() {} });
}

function refusal(...given: Parameters<typeof requestsOf>): string {
  try {
    requestsOf(...given);
  } catch (error) {
    const { code, message } = TritonError.from(error);
    return `${code} ${message}`;
  }
  return "nothing was thrown";
}

describe("a warm-up sample", () => {
  it("has one request of one row for each row of its batch", () => {
    const requests = requestsOf({ zeroData: true }, { batchSize: 3 });
    expect(requests.map(({ inputs }) => inputs.get("x")!.shape)).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ]);
  });

  it("is left out without validation when its batch size is 0", () => {
    expect(requestsOf({ dims: [-1] }, { batchSize: 0 })).toEqual([]);
  });

  it("reads the first bytes of a file", () => {
    const [request] = requestsOf({ inputDataFile: "f" }, { readFile: () => new Uint8Array(99).fill(1) });
    expect([...request!.inputs.get("x")!.elements]).toEqual([0x01010101, 0x01010101]);
  });

  it.each([
    [{}, "[request id: <id_unknown>] warmup setting expects input 'x' to have input_data_type set"],
    [
      { dims: [-1], zeroData: true },
      "warmup setting expects all variable-size dimensions are specified for input 'x'",
    ],
    [
      { dataType: "TYPE_INVALID", zeroData: true },
      "warmup setting expects all variable-size dimensions are specified for input 'x', which has data type 'TYPE_INVALID'",
    ],
    [{ dims: [-2], zeroData: true }, "tensor 'x' contains an invalid dimension [-2]"],
  ])("is rejected with %j", (input, text) => {
    expect(refusal(input)).toBe(`INVALID_ARG ${text}`);
  });

  it("is rejected when its file is too short or cannot be read", () => {
    expect(refusal({ inputDataFile: "f" }, { readFile: () => new Uint8Array(7) })).toBe(
      "INVALID_ARG [request id: <id_unknown>] warmup setting expects 8 bytes, but the data provided from fonly has 7 bytes",
    );
    expect(refusal({ inputDataFile: "f" })).toBe("INTERNAL no such file");
  });
});
