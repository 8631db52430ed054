import { describe, expect, it } from "vitest";
import { compareValues } from "./support/compare-values.js";
import { compareCall } from "./support/grpc/compare-call.js";
import { type Arrangement, compareResponse, isNewerAnswer } from "./support/http/compare-response.js";
import { parseResponse } from "./support/http/parse-response.js";
import { parseJson } from "./support/json-value.js";
import { loadLines } from "./support/load-cases.js";
import { compareMetrics } from "./support/metrics/compare-metrics.js";
import { compareOutcome } from "./support/scheduler/compare-outcome.js";
import type { Scenario } from "./support/scheduler/scenario.js";

const asItIs: Arrangement = { expected: (body) => body, got: (body) => body, both: (body) => body };

const answer = (text: string) => parseResponse(Buffer.from(text, "latin1"), "POST", true);

describe("comparing JSON values", () => {
  const differences = (expected: string, got: string) => compareValues(parseJson(expected), parseJson(got));

  it("takes other spellings of the same values as equal", () => {
    expect(differences('{"a":1,"b":[1e-7,NaN]}', '{"b":[1.0E-7,NaN],"a":1}')).toEqual([]);
    expect(differences('["é","<ANY>"]', '["\\u00e9",{"x":1}]')).toEqual([]);
  });

  it.each([
    ["an integer and a real number", "[1]", "[1.0]"],
    ["integers that are one double", "[9007199254740992]", "[9007199254740993]"],
    ["zero and minus zero", "[0.0]", "[-0.0]"],
    ["a missing member", '{"a":1,"b":2}', '{"a":1}'],
    ["a further member", '{"a":1}', '{"a":1,"b":2}'],
    ["another order of a list", "[1,2]", "[2,1]"],
  ])("tells %s apart", (_what, expected, got) => {
    expect(differences(expected, got)).not.toEqual([]);
  });

  it("refuses a key that comes twice", () => {
    expect(() => parseJson('{"a":1,"a":1}')).toThrow(SyntaxError);
  });
});

describe("comparing HTTP answers", () => {
  const recorded = {
    status: 200,
    headers: { "Content-Type": "application/octet-stream", "Inference-Header-Content-Length": "7" },
    body_text: '{"a":1}\u0001\u0002',
  };
  const head = "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n";

  it("splits JSON from tensors by the answer's own header", () => {
    const got = answer(`${head}Inference-Header-Content-Length: 8\r\n\r\n{"a": 1}\x01\x02`);
    expect(compareResponse(recorded, got, asItIs)).toEqual([]);
  });

  it("finds another status, type, number and tensor byte", () => {
    const got = answer(
      'HTTP/1.1 400 No\r\nContent-Type: text/plain\r\nInference-Header-Content-Length: 7\r\n\r\n{"a":2}\x01\x03',
    );
    expect(compareResponse(recorded, got, asItIs)).toHaveLength(4);
  });

  it("finds a header that changes how the body is read", () => {
    const got = answer("HTTP/1.1 200 OK\r\nInference-Header-Content-Length: 2\r\n\r\n{}");
    expect(compareResponse({ status: 200, body_text: "{}" }, got, asItIs)).toHaveLength(1);
  });

  it("waits for all chunks of a body", () => {
    const chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n";
    expect(parseResponse(Buffer.from(chunks), "POST", false)).toBeUndefined();
    expect(parseResponse(Buffer.from(`${chunks}\r\n`), "POST", false)?.body.toString()).toBe("{}");
  });

  it("accepts what the newer sources answer, and nothing near it", () => {
    const got = answer('HTTP/1.1 400 No\r\n\r\n{"error":"request size of 12 bytes"}');
    expect(isNewerAnswer("400 request size of N bytes", got)).toBe(true);
    expect(isNewerAnswer("404 request size of N bytes", got)).toBe(false);
    expect(isNewerAnswer("400 request size", got)).toBe(false);
  });
});

describe("comparing gRPC calls", () => {
  const status = { code: "INTERNAL", details: "broken" };

  it("compares texts, except those of the client library and of the recorded backend", () => {
    const got = { response: null, status: { code: "INTERNAL", details: "else" } };
    expect(compareCall({ status, response: null }, got)).toHaveLength(1);
    expect(compareCall({ status, response: null, flags: ["backend"] }, got)).toEqual([]);
  });

  it("compares messages field by field", () => {
    const ok = { code: "OK", details: "" };
    const response = { raw_output_contents: [{ $fill: { byte: 1, count: 3 } }] };
    const got = (bytes: string) => ({ response: { raw_output_contents: [bytes] }, status: ok });
    expect(compareCall({ status: ok, response }, got("AQEB"))).toEqual([]);
    expect(compareCall({ status: ok, response }, got("AQEC"))).toHaveLength(1);
  });
});

describe("comparing scenarios and metrics", () => {
  const scenario = loadLines<Scenario>("scheduler/scenarios.jsonl").find(({ id }) => id === "db_rows_222");
  const { outcome } = scenario as Scenario;

  it("finds other batches and later executions", () => {
    expect(compareOutcome(scenario as Scenario, outcome)).toEqual([]);
    const reversed = { ...outcome, executions: [...outcome.executions].reverse() };
    const late = {
      ...outcome,
      executions: outcome.executions.map((e) => ({ ...e, about_ms: e.about_ms + 61 })),
    };
    expect(compareOutcome(scenario as Scenario, reversed)).not.toEqual([]);
    expect(compareOutcome(scenario as Scenario, late)).not.toEqual([]);
  });

  it("finds a missing series and another count, whatever the order of labels", () => {
    const page = 'nv_inference_count{version="1",model="m"} 2';
    expect(compareMetrics(page, ['nv_inference_count{model="m",version="1"} 2'])).toEqual([]);
    expect(compareMetrics(page, ['nv_inference_count{model="m",version="1"} 3'])).toHaveLength(1);
    expect(compareMetrics(page, ['nv_inference_exec_count{model="m",version="1"} 2'])).toHaveLength(1);
  });
});
