import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { perfOptions } from "../../src/perf/perf-options.js";
import { readSettings, settingWarnings } from "../../src/perf/perf-settings.js";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "perf-"));
});

afterAll(() => rm(folder, { recursive: true }));

function settingsOf(...args: string[]) {
  const command = perfOptions("0")
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  return readSettings(command.parse(args, { from: "user" }).opts(), "");
}

const levelsOf = (...args: string[]) => {
  const { plan } = settingsOf("-m", "m", ...args);
  return plan !== undefined && "range" in plan ? { kind: plan.kind, ...plan.range } : plan;
};

describe("the options of perf", () => {
  it("are those of perf_analyzer's documentation", () => {
    const settings = settingsOf(
      ..."-m resnet -x 2 -u host:9001 -i grpc -b 8 --concurrency-range 1:8:2 -a --streaming".split(" "),
      ..."--measurement-mode count_windows --measurement-request-count 90 -s 20 -r 15 --percentile=95".split(
        " ",
      ),
      ..."--shape x:3,224,224 --shape a:b:1 --string-length 16 --max-threads 2 --shared-memory system".split(
        " ",
      ),
      ..."--num-of-sequences 7 --sequence-length 30 --sequence-id-range 10:20 --serial-sequences".split(" "),
      ..."--grpc-compression-algorithm gzip --warmup-request-count 5 -v -f o.csv --verbose-csv".split(" "),
      "-H",
      "authorization: Bearer a:b",
      "--request-parameter",
      "temperature:0.5:double",
      "--request-parameter",
      "name:a:b:string",
    );
    expect(settings.target).toMatchObject({
      kind: "grpc",
      modelName: "resnet",
      modelVersion: "2",
      url: "host:9001",
      streaming: true,
      compression: "gzip",
      sharedMemory: "system",
      headers: { authorization: "Bearer a:b" },
      parameters: { temperature: 0.5, name: "a:b" },
    });
    expect(settings.measure).toMatchObject({
      batchSize: 8,
      mode: "count_windows",
      windowRequestCount: 90,
      maxTrials: 15,
      warmupRequestCount: 5,
      stability: { percentage: 20, percentile: 95 },
    });
    expect(settings.data).toMatchObject({
      shapes: { x: [3, 224, 224], "a:b": [1] },
      stringLength: 16,
      batchSize: 8,
    });
    expect(settings.load.sequences).toMatchObject({
      count: 7,
      length: 30,
      idStart: 10,
      idRange: 10,
      serial: true,
    });
  });

  it("have perf_analyzer's defaults", () => {
    const { target, measure, plan } = settingsOf("-m", "m");
    expect(target).toMatchObject({ kind: "http", url: "localhost:8000" });
    expect(measure).toMatchObject({
      intervalMs: 5000,
      maxTrials: 10,
      stability: { percentage: 10 },
      batchSize: 1,
    });
    expect(plan).toMatchObject({ kind: "sweep", range: { start: 1, end: 1, step: 1 } });
    expect(settingsOf("-m", "m", "-i", "grpc").target).toMatchObject({ url: "localhost:8001" });
  });

  it("choose sweeps, searches, ramps, gaps and schedules", async () => {
    expect(levelsOf("--concurrency-range", "4:16:4")).toEqual({ kind: "sweep", start: 4, end: 16, step: 4 });
    expect(levelsOf("--request-rate-range", "0.5")).toEqual({ kind: "sweep", start: 0.5, end: 0.5, step: 1 });
    expect(levelsOf("--concurrency-range", "1:0", "-l", "9")).toEqual({
      kind: "sweep",
      start: 1,
      end: 0,
      step: 1,
    });
    expect(levelsOf("--request-rate-range", "1:100", "--binary-search", "-l", "5")).toMatchObject({
      kind: "search",
    });
    expect(levelsOf("--request-rate-ramp", "0:100:30s", "--request-distribution", "poisson")).toMatchObject({
      phases: [
        {
          level: { mode: "request_rate_ramp", from: 0, to: 100, distribution: "poisson" },
          durationMs: 30_000,
        },
      ],
    });
    const gaps = join(folder, "gaps");
    await writeFile(gaps, "100000\n200000\n\n500000\n");
    expect(levelsOf("--request-intervals", gaps)).toEqual({
      kind: "single",
      level: { mode: "request_intervals", gapsMicroseconds: [100_000, 200_000, 500_000] },
    });
    expect(levelsOf("--fixed-schedule")).toBeUndefined();
    const periodic = ["-i", "grpc", "--streaming", "--profile-export-file", "p.json"];
    expect(levelsOf("--periodic-concurrency-range", "4:20:2", "--request-period", "5", ...periodic)).toEqual({
      kind: "single",
      level: { mode: "periodic_concurrency", start: 4, end: 20, step: 2, responses: 5 },
    });
    const sessions = ["--service-kind", "openai", "--input-data", "sessions.json"];
    expect(settingsOf("-m", "m", "--session-concurrency", "3", ...sessions)).toMatchObject({
      plan: undefined,
      sessionConcurrency: 3,
      data: { sessions: true },
      load: { threads: 1 },
    });
  });

  it("name an in-process module and an OpenAI endpoint", () => {
    expect(
      settingsOf("-m", "m", "--service-kind", "triton_c_api", "--module", "app.js").target,
    ).toMatchObject({ kind: "in-process", source: { module: "app.js" } });
    expect(settingsOf("--service-kind", "openai", "--endpoint", "v1/embeddings").target).toMatchObject({
      kind: "openai",
      endpoint: "v1/embeddings",
    });
  });

  it.each([
    [[], "-m: expected the name of a model"],
    [["-m", "m", "-i", "rest"], "--protocol: expected http or grpc, got 'rest'"],
    [
      ["-m", "m", "--concurrency-range", "0"],
      "--concurrency-range: expected a whole number of at least 1, got '0'",
    ],
    [
      ["-m", "m", "--concurrency-range", "8:4"],
      "--concurrency-range: expected an end of at least the start 8, or 0 for none, got 4",
    ],
    [
      ["-m", "m", "--concurrency-range", "1:0"],
      "a range with the end 0 has no limit: it needs --latency-threshold",
    ],
    [
      ["-m", "m", "--concurrency-range", "1:9", "--binary-search"],
      "--binary-search needs --latency-threshold",
    ],
    [
      ["-m", "m", "--concurrency-range", "1", "--request-rate-range", "5"],
      "--concurrency-range and --request-rate-range exclude each other: expected one of them",
    ],
    [["-m", "m", "--periodic-concurrency-range", "1:9"], "--periodic-concurrency-range needs --streaming"],
    [
      ["-m", "m", "-i", "grpc", "--streaming", "--periodic-concurrency-range", "1:9"],
      "--periodic-concurrency-range needs --profile-export-file",
    ],
    [["-m", "m", "--session-concurrency", "2"], "--session-concurrency needs --service-kind openai"],
    [["--service-kind", "openai", "--session-concurrency", "2"], "--session-concurrency needs --input-data"],
    [["-m", "m", "-t", "4"], "-t <n> is not supported: use --concurrency-range <n>"],
    [["-m", "m", "--trace-rate", "5"], "--trace-rate <n> is not supported: set traces at the server"],
    [
      ["-m", "m", "--shared-memory", "cuda"],
      "--shared-memory cuda is not supported: expected none or system",
    ],
    [["-m", "m", "--streaming"], "--streaming: expected -i grpc, got http"],
    [["-m", "m", "--shape", "x=3"], "--shape: expected NAME:d1,d2, got 'x=3'"],
    [["-m", "m", "-H", "nothing"], "-H: expected 'Name: value', got 'nothing'"],
    [
      ["-m", "m", "--request-parameter", "a:x:int"],
      "--request-parameter: expected a value of type int, got 'a:x:int'",
    ],
    [
      ["-m", "m", "--request-rate-ramp", "1:2"],
      "--request-rate-ramp: expected from:to:time such as 10:100:30s, got '1:2'",
    ],
    [
      ["-m", "m", "--request-rate-ramp", "1:2:3"],
      "--request-rate-ramp: expected a time such as 500ms, 30s or 2m, got '3'",
    ],
    [["-m", "m", "--request-intervals", "/nowhere"], "--request-intervals: cannot read '/nowhere': ENOENT"],
    [
      ["-m", "m", "--service-kind", "triton_c_api"],
      "--service-kind triton_c_api needs --model-repository or --module",
    ],
    [["-m", "m", "--verbose-csv"], "--verbose-csv needs --filename"],
    [
      ["-m", "m", "--assert", "p99=5"],
      "--assert: expected a condition such as p99<50ms or throughput>1000, got 'p99=5'",
    ],
    [["-m", "m", "--assert", "speed>5"], "--assert: expected p<number>, avg, min,"],
    [
      ["-m", "m", "--assert", "throughput>5ms"],
      "--assert: expected a number without a unit in 'throughput>5ms', got 'ms'",
    ],
    [
      ["-m", "m", "--ssl-https-ca-certificates-file", "/nowhere"],
      "expected a PEM file, cannot read '/nowhere'",
    ],
  ])("refuses %s with what was expected", (args, text) => {
    expect(() => settingsOf(...args)).toThrow(text);
  });

  it("take perf_analyzer's values for options that are not given", () => {
    const { measure } = settingsOf("-m", "m", "--percentile=-1", "--request-count=0", "-l", "0");
    expect(measure.stability.percentile).toBeUndefined();
    expect(measure.requestCount).toBeUndefined();
    expect(measure.latencyLimitMs).toBeUndefined();
    expect(() => settingsOf("-m", "m", "--concurrency-range", "1:0", "-l", "0")).toThrow(
      "a range with the end 0 has no limit: it needs --latency-threshold",
    );
  });

  it("take protocols in any case, PEM as the type of certificates, and versions of called models", () => {
    const types = ["--ssl-https-client-certificate-type=PEM", "--ssl-https-private-key-type=PEM"];
    const { target, calledModels } = settingsOf(
      ...["-m", "m", "-i", "gRPC", "--bls-composing-models=a:3,b", ...types],
    );
    expect(target.kind).toBe("grpc");
    expect(calledModels).toEqual([
      { name: "a", version: "3" },
      { name: "b", version: "" },
    ]);
    expect(() => settingsOf("-m", "m", "--ssl-https-private-key-type=DER")).toThrow("keys are PEM files");
  });

  it("warn of settings that cannot give a stable level", () => {
    expect(settingWarnings(settingsOf("-m", "m", "-r", "2"))).toEqual([
      "--max-trials 2: a level needs 3 windows to be stable",
    ]);
    expect(settingWarnings(settingsOf("-m", "m", "-r", "2", "--request-count", "5"))).toEqual([]);
  });
});

const page = readFileSync(
  fileURLToPath(new URL("../../../../docs/performance-tools.md", import.meta.url)),
  "utf8",
).replaceAll("\r\n", "\n");

/** Arguments of a command line, with quotes as a shell reads them. */
function argumentsOf(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare!).slice(2);
}

const commands = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, block]) =>
  block!.trimEnd().split("\n"),
);

describe("the page about the performance tools", () => {
  it.each(commands.filter((line) => line.startsWith("tritonjs perf")))(
    "has a command that is read: %s",
    (line) => {
      const command = perfOptions("0").exitOverride();
      command.parse(argumentsOf(line), { from: "user" });
      expect(readSettings(command.opts(), line).description.command).toBe(line);
    },
  );

  it("lists every option of the command, and no other", () => {
    const [, table = ""] = /## Options\n(.*?)\n\n`tritonjs perf --help`/s.exec(page) ?? [];
    const listed = [...table.matchAll(/`(--[\w-]+)`/g)].map(([, name]) => name!);
    expect(listed.toSorted()).toEqual(
      perfOptions("")
        .options.flatMap(({ hidden, long }) => (hidden || !long ? [] : [long]))
        .filter((name) => name !== "--version")
        .toSorted(),
    );
  });

  it("names every exit code that the help names", () => {
    const codesOf = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, code]) => code);
    const [, table = ""] = /## Exit codes\n(.*?)\n\n`--assert`/s.exec(page) ?? [];
    let help = "";
    perfOptions("0")
      .configureOutput({
        writeOut: (text) => {
          help += text;
        },
      })
      .outputHelp();
    expect(codesOf(table, /^\| (\d+) \|/gm)).toEqual(codesOf(help.split("Exit codes:")[1]!, /^ {2}(\d+) /gm));
  });
});
