import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { commandDifferences } from "./differences/command-differences.js";
import { amended, type Difference, type Draft as Mutable } from "./differences/difference.js";
import { grpcDifferences } from "./differences/grpc-differences.js";
import { httpDifferences } from "./differences/http-differences.js";
import { lifecycleDifferences } from "./differences/lifecycle-differences.js";
import { loadDifferences } from "./differences/load-differences.js";
import { schedulerDifferences } from "./differences/scheduler-differences.js";
import { trafficDifferences } from "./differences/traffic-differences.js";
import type { CommandCase } from "./support/cli/command-case.js";
import { areLines, pattern } from "./support/cli/command-output.js";
import { compareValues } from "./support/compare-values.js";
import { refusalFault } from "./support/grpc/access.js";
import { compareCall } from "./support/grpc/compare-call.js";
import type { GrpcCase } from "./support/grpc/grpc-case.js";
import { compareRefusal as compareHttpRefusal } from "./support/http/access.js";
import { type Arrangement, compareResponse } from "./support/http/compare-response.js";
import type { HttpCase } from "./support/http/http-case.js";
import { parseResponse } from "./support/http/parse-response.js";
import { parseJson } from "./support/json-value.js";
import { compareIndex } from "./support/lifecycle/compare-index.js";
import type { Scenario as LifeCycle } from "./support/lifecycle/scenario.js";
import { loadJson, loadLines } from "./support/load-cases.js";
import { compareLoad } from "./support/loads/compare-load.js";
import type { LoadCase, PlayedLoad } from "./support/loads/load-case.js";
import { compareMetrics, furtherSeries } from "./support/metrics/compare-metrics.js";
import { compareOutcome, compareRefusal } from "./support/scheduler/compare-outcome.js";
import type { Outcome, Scenario } from "./support/scheduler/scenario.js";
import { type RecordedModel, readModels } from "./support/served-models.js";

const asItIs: Arrangement = { expected: (body) => body, got: (body) => body, both: (body) => body };

const answer = (text: string) => parseResponse(Buffer.from(text, "latin1"), "POST", true);

describe("comparing JSON values", () => {
  const differences = (expected: string, got: string) => compareValues(parseJson(expected), parseJson(got));

  it("accepts other spellings of the same values as equal", () => {
    expect(differences('{"a":1,"b":[1e-7,NaN]}', '{"b":[1.0E-7,NaN],"a":1}')).toEqual([]);
    expect(differences('["é","<ANY>"]', '["\\u00e9",{"x":1}]')).toEqual([]);
  });

  it.each([
    ["an integer and a real number", "[1]", "[1.0]"],
    ["integers that are one double", "[9007199254740992]", "[9007199254740993]"],
    ["zero and minus zero", "[0.0]", "[-0.0]"],
    ["a missing member", '{"a":1,"b":2}', '{"a":1}'],
    ["an additional member", '{"a":1}', '{"a":1,"b":2}'],
    ["another order of a list", "[1,2]", "[2,1]"],
  ])("tells %s apart", (_what, expected, got) => {
    expect(differences(expected, got)).not.toEqual([]);
  });

  it("rejects a duplicate key", () => {
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

  it("detects another status, type, number and tensor byte", () => {
    const got = answer(
      'HTTP/1.1 400 No\r\nContent-Type: text/plain\r\nInference-Header-Content-Length: 7\r\n\r\n{"a":2}\x01\x03',
    );
    expect(compareResponse(recorded, got, asItIs)).toHaveLength(4);
  });

  it("detects a header that changes how the body is read", () => {
    const got = answer("HTTP/1.1 200 OK\r\nInference-Header-Content-Length: 2\r\n\r\n{}");
    expect(compareResponse({ status: 200, body_text: "{}" }, got, asItIs)).toHaveLength(1);
  });

  it("waits for all chunks of a body", () => {
    const chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n";
    expect(parseResponse(Buffer.from(chunks), "POST", false)).toBeUndefined();
    expect(parseResponse(Buffer.from(`${chunks}\r\n`), "POST", false)?.body.toString()).toBe("{}");
  });

  it.each([
    ["bytes after the body", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}{}"],
    [
      "two indications of its end",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ],
    [
      "chunks that were not recorded",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ],
  ])("detects %s", (_what, text) => {
    expect(compareResponse({ status: 200, body_text: "{}" }, answer(text), asItIs)).toHaveLength(1);
  });

  it.each(["8", "6", "07x", "400"])("detects a JSON length of %s where there are 7 bytes", (length) => {
    const got = answer(`${head}Inference-Header-Content-Length: ${length}\r\n\r\n{"a":1}\x01\x02`);
    expect(compareResponse(recorded, got, asItIs)).not.toEqual([]);
  });

  it("detects an answer to a restricted request without the token", () => {
    const request = { method: "GET", path: "/v2/models/stats", headers: {} };
    expect(compareHttpRefusal(request, answer("HTTP/1.1 200 OK\r\n\r\n{}"))).toHaveLength(1);
    expect(compareHttpRefusal(request, answer('HTTP/1.1 403 No\r\n\r\n{"error":"no"}'))).toHaveLength(1);
  });
});

describe("comparing gRPC calls", () => {
  const status = { code: "INTERNAL", details: "broken" };

  it("compares texts without the recording's text about its backend", () => {
    const got = { response: null, status: { code: "INTERNAL", details: "else" } };
    expect(compareCall({ status, response: null }, got)).toHaveLength(1);
    expect(compareCall({ status, response: null, flags: ["backend", "bug"] }, got)).toHaveLength(1);
  });

  it("detects an answer to a restricted call without the token", () => {
    expect(refusalFault("LogSettings", { response: {}, status: { code: "OK", details: "" } })).toHaveLength(
      1,
    );
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

  it("detects other batches and later executions", () => {
    expect(compareOutcome(scenario as Scenario, outcome)).toEqual([]);
    const reversed = { ...outcome, executions: [...outcome.executions].reverse() };
    const late = {
      ...outcome,
      executions: outcome.executions.map((e) => ({ ...e, about_ms: e.about_ms + 61 })),
    };
    expect(compareOutcome(scenario as Scenario, reversed)).not.toEqual([]);
    expect(compareOutcome(scenario as Scenario, late)).not.toEqual([]);
  });

  it.each<[string, (outcome: Mutable<Outcome>) => unknown]>([
    ["an output", ({ responses: [first] }) => Object.assign(first as object, { outputs: {} })],
    [
      "a response parameter",
      ({ responses: [first] }) => Object.assign(first as object, { parameters: { k: 1 } }),
    ],
    ["a missing answer", ({ responses }) => responses.pop()],
    ["the order of arrival", ({ arrival_order: order }) => (order as string[][]).reverse().push(["9"])],
    ["a count", ({ statistics }) => Object.assign(statistics, { fail: 1 })],
    ["a warm-up execution", (outcome) => Object.assign(outcome, { load_executions: outcome.executions })],
  ])("detects %s that differs from the recording", (_what, change) => {
    const got = structuredClone(outcome) as Mutable<Outcome>;
    change(got);
    expect(compareOutcome(scenario as Scenario, got)).not.toEqual([]);
  });

  it("detects another refusal, an unexpected load and a missing one", () => {
    const refused = { ...scenario, outcome: { load_error: "bad for m" } } as unknown as Scenario;
    expect(compareRefusal(refused, "bad for m")).toEqual([]);
    expect(compareRefusal(refused, "bad for m, and more")).toHaveLength(1);
    expect(compareRefusal(refused, undefined)).toHaveLength(1);
    expect(compareRefusal({ ...refused, outcome: {} } as Scenario, "bad for m")).toHaveLength(1);
  });

  it("detects a series that was not recorded, except those of our own", () => {
    const page = 'nv_inference_count{model="m"} 2\nnv_new{model="m"} 1\nour_own 1';
    expect(furtherSeries(page, ['nv_inference_count{model="m"} 2'])).toHaveLength(1);
  });

  it("detects a missing series and another count, whatever the order of labels", () => {
    const page = 'nv_inference_count{version="1",model="m"} 2';
    expect(compareMetrics(page, ['nv_inference_count{model="m",version="1"} 2'])).toEqual([]);
    expect(compareMetrics(page, ['nv_inference_count{model="m",version="1"} 3'])).toHaveLength(1);
    expect(compareMetrics(page, ['nv_inference_exec_count{model="m",version="1"} 2'])).toHaveLength(1);
  });
});

describe("comparing loads", () => {
  const recorded: LoadCase = {
    id: "load",
    model: "m",
    server_flags: [],
    files: {},
    load: {
      status: 400,
      body: { error: "load failed for model 'm': version 1 is at UNAVAILABLE state: Internal: no;\n" },
    },
    index: [{ name: "m", version: "1", state: "UNAVAILABLE", reason: "Internal: no" }],
    index_others: [],
    config_raw: '{"a":1}',
    metadata: { name: "m" },
    ready: 400,
  };
  const got = { ...recorded, config: { a: 1 } } as PlayedLoad;

  it("accepts a load equal to the recording", () => expect(compareLoad(recorded, got)).toEqual([]));

  it.each<[string, Partial<PlayedLoad>]>([
    ["status", { load: { ...got.load, status: 500 } }],
    ["error", { load: { status: 400, body: { error: "else" } } }],
    ["reason in the index", { index: [{ name: "m", version: "1", state: "UNAVAILABLE", reason: "else" }] }],
    ["row in the index", { index: [...got.index, { name: "m", version: "2", state: "READY" }] }],
    ["member", { index_others: [{ name: "a", version: "1", state: "READY" }] }],
    ["number in the configuration", { config_raw: '{"a":1.0}' }],
    ["metadata", { metadata: { name: "n" } }],
    ["readiness", { ready: 200 }],
  ])("detects another %s", (_what, change) => {
    expect(compareLoad(recorded, { ...got, ...change })).not.toEqual([]);
  });

  it("accepts additional problems only when they name the model", () => {
    const told = (text: string) => ({
      load: {
        status: 400,
        body: { error: (recorded.load!.body as { error: string }).error.replace("no", text) },
      },
      index: [{ ...recorded.index![0]!, reason: `Internal: ${text}` }],
    });
    expect(compareLoad(recorded, { ...got, ...told("no\nmore for m") })).toEqual([]);
    expect(compareLoad(recorded, { ...got, ...told("no\nmore") })).not.toEqual([]);
  });
});

describe("comparing indexes and commands", () => {
  it("accepts an added reason only when the log has it", () => {
    const row = (reason: string) => [{ name: "m", state: "UNAVAILABLE", reason }];
    const log = ["E x.cc] \"Poll failed for model directory 'm': bad for m\""];
    expect(compareIndex([{ name: "m" }], row("Invalid argument: bad for m"), log)).toEqual([]);
    expect(compareIndex([{ name: "m" }], row("Invalid argument: worse for m"), log)).toHaveLength(1);
    expect(compareIndex([{ name: "m" }], [])).toHaveLength(1);
  });

  it("recognises a line by a pattern, and detects a missing one", () => {
    const expected = [pattern("Warning: '--x' has no effect: "), "Signal (15) received."];
    expect(areLines(expected, ["Warning: '--x' has no effect: none.", "Signal (15) received."])).toBe(true);
    expect(areLines(expected, ["Warning: '--y' has no effect: none.", "Signal (15) received."])).toBe(false);
    expect(areLines(expected, ["Signal (15) received."])).toBe(false);
  });
});

/**
 * Rules for one kind of recording, the number of recordings each applies to, and how many of those it leaves
 * unchanged.
 */
function used<C>(differences: readonly Difference<C, never>[], cases: readonly C[]) {
  return differences.map((difference) => {
    const meant = cases.filter((recorded) => difference.applies(recorded));
    const unchanged = meant.filter((recorded) => isUnchanged(recorded, difference)).length;
    return { rule: difference.rule, untilMended: difference.untilMended, count: meant.length, unchanged };
  });
}

/** True when a rule leaves a recording unchanged, as far as it can be known without the outcome. */
function isUnchanged<C>(recorded: C, difference: Difference<C, never>): boolean {
  try {
    return isDeepStrictEqual(amended(recorded, [difference], [] as never), recorded);
  } catch {
    return false;
  }
}

const httpModels = readModels(loadJson<Record<string, RecordedModel>>("http/models.json"));

const { models } = loadJson<{ models: Record<string, RecordedModel> }>("grpc/models.json");

const calls = loadLines<GrpcCase>("grpc/cases.jsonl");

const loads = ["prototxt", "autocomplete"].flatMap((file) => loadLines<LoadCase>(`config/${file}.jsonl`));

const traffic = ["metrics", "statistics"].flatMap((file) => loadLines<never>(`config/${file}.jsonl`));

const rules = [
  ...used(httpDifferences(httpModels), loadLines<HttpCase>("http/cases.jsonl")),
  ...used(grpcDifferences(readModels(models), calls), calls),
  ...used(schedulerDifferences, loadLines<Scenario>("scheduler/scenarios.jsonl")),
  ...used(loadDifferences, loads),
  ...used(trafficDifferences, traffic),
  ...used(lifecycleDifferences, loadLines<LifeCycle>("config/lifecycle.jsonl")),
  ...used(commandDifferences, loadLines<CommandCase>("config/cli.jsonl")),
];

/** Names of the rules in the first cells of the page's tables. */
const rows = readFileSync(new URL("../../docs/compatibility.md", import.meta.url), "utf8")
  .split("\n")
  .flatMap((line) => /^\| `([\w-]+)` \|/.exec(line)?.[1] ?? []);

describe("the tables in docs/compatibility.md", () => {
  const intended = [...new Set(rules.filter(({ untilMended }) => !untilMended).map(({ rule }) => rule))];

  it("have one row for every rule by which the library differs on purpose", () => {
    expect([...rows].sort()).toEqual(intended.sort());
  });
});

describe("the difference rules", () => {
  it("apply to at least one recording each", () => {
    const idle = new Set(rules.map(({ rule }) => rule));
    for (const { rule, count } of rules) if (count > 0) idle.delete(rule);
    expect([...idle]).toEqual([]);
  });

  it("change the recordings they apply to", () => {
    const idle = new Set(rules.filter(({ count, unchanged }) => count > 0 && unchanged === count));
    expect([...idle].map(({ rule }) => rule)).toEqual([]);
  });
});

describe("the recordings", () => {
  it("are all present, each once", () => {
    const files = ["cli", "lifecycle", "metrics", "statistics", "prototxt", "autocomplete"];
    const all = [
      ...files.map((file) => `config/${file}`),
      "grpc/cases",
      "http/cases",
      "scheduler/scenarios",
    ].flatMap((file) => loadLines<{ readonly id: string }>(`${file}.jsonl`).map(({ id }) => `${file}/${id}`));
    expect(new Set(all).size).toBe(all.length);
    expect(all.length).toBeGreaterThanOrEqual(1950);
  });
});
