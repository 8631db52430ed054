import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RequestFigures } from "../../src/measure/request-figures.js";
import { axisScale, REPORT_STYLE } from "../../src/report/html-chart.js";
import { htmlReport } from "../../src/report/html-report.js";
import { csvFiles, figuresJson, ProfileExport } from "../../src/report/report-files.js";
import { composingPath, LiveProgress, writeReport } from "../../src/report/write-report.js";
import { concurrency, levelOf, RUN, requests, serverOf } from "../support/report-run.js";
import { windowOf } from "../support/request-rows.js";

/** Cells of a row by the names of their columns. */
function cellsOf(text: string, row = 1): Record<string, string> {
  const [header = [], ...rows] = text.split("\n").map((line) => line.split(","));
  return Object.fromEntries(header.map((name, i) => [name, rows[row - 1]![i]!]));
}

const rate = (value: number) => ({ mode: "request_rate", value, distribution: "constant" }) as const;

describe("csv report", () => {
  it("the CSV has perf_analyzer's columns and rows in the order of rising throughput", () => {
    const [file] = csvFiles(
      [
        levelOf(concurrency(2), requests(100), { server: serverOf(100) }),
        levelOf(concurrency(1), requests(60, 20), { server: serverOf(60) }),
      ],
      RUN,
      false,
    );
    expect(file!.text.split("\n")).toEqual([
      "Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input," +
        "Server Compute Infer,Server Compute Output,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency",
      "1,60,1000,12250,1000,500,3000,250,2000,20000,20000,20000,20000",
      "2,100,1000,2250,1000,500,3000,250,2000,10000,10000,10000,10000",
      "",
    ]);
  });

  it("further columns are there when they are asked for, with a value for each GPU", () => {
    const metrics = {
      pages: 1,
      gauges: { nv_gpu_utilization: { "GPU-1": 0.5, "GPU-2": 0.25 } },
      cuts: new Map(),
    };
    const level = levelOf(concurrency(1), requests(10), { metrics, instability: "latency" });
    const [file] = csvFiles([level], { ...RUN, percentile: 99.9 }, true);
    const [header, row] = file!.text.split("\n");
    expect(header).toBe(
      "Concurrency,Inferences/Second,Client Send,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency," +
        "p99.9 latency,request/response,response wait,Avg GPU Utilization,Failed Requests,Remark",
    );
    expect(row).toBe(
      "1,10,1000,2000,10000,10000,10000,10000,10000,3000,7000,GPU-1:0.5;GPU-2:0.25;,0,unstable",
    );
  });

  it("a composing model has a file of its own, beside the main one", () => {
    const server = serverOf(10, { composing: [serverOf(5, { name: "../step", version: "2" })] });
    const [, file] = csvFiles([levelOf(concurrency(1), requests(10), { server })], RUN, false);
    expect(file!.text).toBe(
      "Concurrency,Inferences/Second,Server Queue,Server Compute Input,Server Compute Infer,Server Compute Output\n" +
        "1,5,1000,500,3000,250\n",
    );
    expect(composingPath("out/perf.csv", file!.model!)).toMatch(/^out[/\\]\.\._step_v2\.perf\.csv$/);
  });

  it("a level without a request has no row", () => {
    expect(
      csvFiles([levelOf(concurrency(1), [])], RUN, false)[0]!
        .text.trimEnd()
        .split("\n").length,
    ).toBe(1);
  });

  it("a decoupled model has the throughput of its responses after that of its inferences", () => {
    const rows = requests(10).map((row) => ({ ...row, responses: 3 }));
    const [file] = csvFiles([levelOf(concurrency(1), rows)], { ...RUN, decoupled: true }, false);
    expect(file!.text).toMatch(
      /^Concurrency,Inferences\/Second,Response Throughput,Client Send,.*\n1,10,30,/,
    );
  });

  it("a response cache has its columns after those of the model, and its time is not the network's", () => {
    const base = serverOf(10);
    const stages = { ...base.stages, cacheHit: { count: 5, ns: 5e6 }, cacheMiss: { count: 5, ns: 10e6 } };
    const [file] = csvFiles(
      [levelOf(concurrency(1), requests(10), { server: { ...base, stages } })],
      RUN,
      false,
    );
    expect(file!.text.split("\n")[0]).toContain(
      ",Server Compute Output,Server Cache Hit,Server Cache Miss,Client Recv,",
    );
    expect(cellsOf(file!.text)).toMatchObject({
      "Server Cache Hit": "500",
      "Server Cache Miss": "1000",
      "Network+Server Send/Recv": "750",
    });
  });

  it("a request rate heads its column, also in the files of composing models and without any row", () => {
    const run = { ...RUN, load: "request_rate" } as const;
    const server = serverOf(10, { composing: [serverOf(10, { name: "step", version: "1" })] });
    const files = csvFiles([levelOf(rate(12.5), requests(10), { server })], run, false);
    for (const { text } of files) expect(text).toMatch(/^Request Rate,Inferences\/Second,.*\n12\.5,10,/);
    expect(files.length).toBe(2);
    expect(csvFiles([], run, false)[0]!.text).toMatch(/^Request Rate,/);
    expect(csvFiles([], { ...run, load: "request_intervals" }, false)[0]!.text).toMatch(/^Request Rate,/);
    expect(csvFiles([], RUN, false)[0]!.text).toMatch(/^Concurrency,/);
  });

  it("a level whose server could not be asked has no values in the columns of the server", () => {
    const [file] = csvFiles(
      [levelOf(concurrency(1), requests(5), { server: serverOf(5) }), levelOf(concurrency(2), requests(10))],
      RUN,
      false,
    );
    const columns = ["Network+Server Send/Recv", "Server Queue", "Server Compute Input"];
    columns.push("Server Compute Infer", "Server Compute Output");
    const empty = Object.fromEntries(columns.map((column) => [column, ""]));
    expect(cellsOf(file!.text, 2)).toMatchObject({ ...empty, "Client Send": "1000", "Client Recv": "2000" });
    expect(cellsOf(file!.text, 1)["Server Queue"]).toBe("1000");
  });
});

describe("figures json", () => {
  it("figures of one level have AIPerf's keys at the top", () => {
    const row = { sent: 0, times: [40, 60, 120], tokens: [1, 2, 2], end: 120 };
    const json = JSON.parse(figuresJson([levelOf(concurrency(1), [row], {}, true)], RUN));
    expect(json.time_to_first_token).toMatchObject({
      unit: "ms",
      avg: 40,
      min: 40,
      max: 40,
      p50: 40,
      p99: 40,
      std: null,
    });
    expect(json.inter_token_latency.avg).toBe(20);
    expect(json.output_token_throughput.unit).toBe("tokens/sec");
    expect(json.output_token_throughput_per_user).toMatchObject({ unit: "tokens/sec/user", avg: 50 });
    expect(json.goodput).toEqual({ unit: "requests/sec", avg: 1 / 0.12 });
    expect(json.request_latency.avg).toBe(120);
    expect(json.was_cancelled).toBe(false);
    expect(json.input_config.model).toBe("m");
  });

  it("figures of several levels are in a list, with what is wrong with each", () => {
    const json = JSON.parse(
      figuresJson(
        [
          levelOf(concurrency(1), requests(10), { server: serverOf(10) }),
          levelOf(concurrency(2), [...requests(3), { sent: 0, end: 1, error: "gone" }], {
            instability: "throughput",
            interrupted: true,
          }),
        ],
        RUN,
      ),
    );
    expect(json.request_latency).toBeUndefined();
    expect(json.was_cancelled).toBe(true);
    expect(json.levels.map((level: { stable: boolean }) => level.stable)).toEqual([true, false]);
    expect(json.levels[0].server).toMatchObject({
      queue_ms: 1,
      batch_sizes: [{ batch_size: 4, count: 2.5 }],
    });
    expect(json.levels[1].error_summary).toEqual([{ error_details: { message: "gone" }, count: 1 }]);
  });

  it("figures of a level without a window have no times", () => {
    const figures = new RequestFigures({ batchSize: 1 });
    const fault = { kind: "generator", text: "no thread" } as const;
    const json = JSON.parse(
      figuresJson([levelOf(concurrency(1), [], { figures, fault, timeline: [] })], RUN),
    );
    expect(json).toMatchObject({ start_time: null, end_time: null, error: "no thread" });
  });

  it("progress is a line for each window, or one line that changes in a terminal", () => {
    const { timeline } = levelOf(concurrency(4), requests(10));
    const summary = { ...timeline[0]!, queueMs: 1.5 };
    const write = (isInteractive: boolean) => {
      let text = "";
      const progress = new LiveProgress({ isInteractive, writeError: (part) => (text += part) });
      progress.onMoment(concurrency(4), summary);
      progress.onWindow(concurrency(4), summary, 1);
      progress.onMoment(concurrency(4), summary);
      progress.onLevel();
      return text;
    };
    expect(write(false)).toBe(
      "concurrency 4, window 1: 10 infer/s, latency avg 10 ms, p99 10 ms, queue 1.5 ms\n",
    );
    expect(write(true).split("\r\x1b[2K")).toEqual([
      "",
      "concurrency 4, window 1: 10 infer/s, latency avg 10 ms, p99 10 ms",
      "concurrency 4, window 2: 10 infer/s, latency avg 10 ms, p99 10 ms, queue 1.5 ms",
      "",
    ]);
  });
});

const results = [1, 2].map((value) =>
  levelOf(concurrency(value), requests(value * 50, value * 10), { server: serverOf(value * 50) }),
);

describe("the HTML report", () => {
  it("is one file without scripts that loads nothing", () => {
    const page = htmlReport(results, RUN, []);
    expect(page).not.toMatch(/<script|<link|<img|<iframe|@import|url\(|\son\w+=|\sstyle=/i);
    expect(page.match(/https?:\/\//g)).toBeNull();
  });

  it("has a policy that allows its own style sheet only", () => {
    const page = htmlReport(results, RUN, []);
    const style = /<style>([\s\S]*?)<\/style>/.exec(page)![1]!;
    const hash = createHash("sha256").update(style).digest("base64");
    expect(page).toContain(`style-src &#39;sha256-${hash}&#39;`);
    expect(page).toContain("default-src &#39;none&#39;");
  });

  it("can be read in light and in dark mode: text and lines contrast with what is behind them", () => {
    const [light = "", dark = ""] = [...REPORT_STYLE.matchAll(/:root \{[^}]*\}/g)].map(([rule]) => rule);
    for (const rule of [light, dark]) {
      const colors = new Map(
        [...rule.matchAll(/--(\w+): (#\w+)/g)].map(([, name, color]) => [name!, color!]),
      );
      for (const name of ["text", "quiet", "s1", "s2", "s3", "s4", "s5", "s6", "s7"]) {
        for (const behind of ["ground", "panel"]) {
          const contrast = contrastOf(colors.get(name)!, colors.get(behind)!);
          const least = name === "text" || name === "quiet" || name === "s2" ? 4.5 : 3;
          expect(contrast, `${name} on ${behind}`).toBeGreaterThan(least);
        }
      }
    }
  });

  it("escapes every text that comes from outside", () => {
    const evil = '<img src=x onerror="alert(1)">';
    const level = levelOf(concurrency(1), [{ sent: 0, end: 5 }], { phase: evil });
    const page = htmlReport([level], { ...RUN, model: evil, url: evil, command: evil, toolVersion: evil }, [
      evil,
    ]);
    expect(page).not.toContain("<img");
    expect(page).toContain("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;");
  });

  it("names the fault of a level", () => {
    const fault = { kind: "all failed", text: "every request failed: gone" } as const;
    const page = htmlReport([levelOf(concurrency(2), [], { fault })], RUN, []);
    expect(page).toContain("concurrency 2: every request failed: gone");
  });

  it("closes every element that it opens", () => {
    const open: string[] = [];
    const page = htmlReport(results, RUN, ["careful"]).replace(/<!doctype html>|<meta[^>]*>/g, "");
    for (const [, slash, name] of page.matchAll(/<(\/?)([a-z][\w-]*)[^>]*>/gi)) {
      if (slash === "/") expect(open.pop()).toBe(name);
      else open.push(name!);
    }
    expect(open).toEqual([]);
  });

  it("draws a chart of latency, of the server, of each distribution, and of the time", () => {
    const page = htmlReport(results, RUN, []);
    for (const label of [
      "Latency against throughput",
      "Time of a request in the server",
      "Distribution of the latencies at concurrency 1",
      "Distribution of the latencies at concurrency 2",
      "inferences per second over time",
      "latency in ms over time",
    ]) {
      expect(page).toContain(`aria-label="${label}"`);
    }
    expect(page).not.toContain("NaN");
  });

  it("can show a run without any request", () => {
    const page = htmlReport([levelOf(concurrency(1), [])], RUN, []);
    expect(page).toContain("Performance of m");
    expect(page).not.toContain("NaN");
  });
});

describe("an axis", () => {
  it("begins at 0 and has round ticks up to the largest value", () => {
    expect(axisScale([3, 97], 0, 100).ticks).toEqual([0, 20, 40, 60, 80, 100]);
    expect(axisScale([0.31], 0, 100).ticks.at(-1)).toBeGreaterThanOrEqual(0.31);
    expect(axisScale([], 0, 100).ticks).toEqual([0, 0.2]);
    expect(axisScale([10], 200, 0).positionOf(5)).toBe(100);
  });
});

/** Contrast of two colours by the rule of WCAG 2, from 1 to 21. */
function contrastOf(a: string, b: string): number {
  const [dark, light] = [luminanceOf(a), luminanceOf(b)].toSorted((one, other) => one - other);
  return (light! + 0.05) / (dark! + 0.05);
}

function luminanceOf(color: string): number {
  const digits =
    color.length === 4 ? [...color.slice(1)].map((digit) => digit + digit) : color.slice(1).match(/../g)!;
  const [red, green, blue] = digits.map((pair) => {
    const share = Number.parseInt(pair, 16) / 255;
    return share <= 0.040_45 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

describe("profile export", () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "perf-"));
  });

  afterAll(() => rm(folder, { recursive: true }));

  const trailer = { version: "1.2.3", service_kind: "triton", endpoint: "localhost:8000" };

  it("the profile export has perf_analyzer's schema", async () => {
    const path = join(folder, "profile.json");
    const profile = await ProfileExport.create(path, (payload) => `{"x":${payload}}`);
    const level = concurrency(1);
    const rows = [
      { sent: 1.5, times: [3, 4], end: 4, outputs: ['{"y":[1,2]}', '{"y":3}'], payload: 7, sequence: 9 },
      { sent: 2, times: [], end: 5, error: "gone" },
    ];
    profile.add(level, windowOf(0, 10, rows));
    profile.add(level, windowOf(10, 20, [{ sent: 12, times: [13], end: 13, outputs: ['{"y":4}'] }]));
    profile.add(concurrency(2), windowOf(20, 30, []));
    await profile.finish(trailer);
    expect(JSON.parse(await readFile(path, "utf8"))).toEqual({
      experiments: [
        {
          experiment: { mode: "concurrency", value: 1 },
          requests: [
            {
              timestamp: 1_500_000,
              sequence_id: 9,
              request_inputs: { x: 7 },
              response_timestamps: [3_000_000, 4_000_000],
              response_outputs: [{ y: [1, 2] }, { y: 3 }],
            },
            { timestamp: 2_000_000, request_inputs: { x: 0 }, response_timestamps: [], response_outputs: [] },
            {
              timestamp: 12_000_000,
              request_inputs: { x: 0 },
              response_timestamps: [13_000_000],
              response_outputs: [{ y: 4 }],
            },
          ],
          window_boundaries: [0, 10_000_000, 20_000_000],
        },
        {
          experiment: { mode: "concurrency", value: 2 },
          requests: [],
          window_boundaries: [20_000_000, 30_000_000],
        },
      ],
      ...trailer,
    });
  });

  it("timestamps are exact integers of nanoseconds since the epoch", async () => {
    const path = join(folder, "epoch.json");
    const profile = await ProfileExport.create(path);
    profile.add(concurrency(1), windowOf(0, 1, [{ sent: 1_790_000_000_000.25, end: 1_790_000_000_001 }]));
    await profile.finish(trailer);
    expect(await readFile(path, "utf8")).toContain('"timestamp":1790000000000250000,');
  });

  it("a file that cannot be created or written is told by its name", async () => {
    const path = join(folder, "none", "perf.csv");
    expect(await writeReport(path, "x")).toMatch(/^cannot write .*perf\.csv: ENOENT/);
  });

  it.skipIf(!existsSync("/dev/full"))("a full disk ends the export, and finishing tells it", async () => {
    const profile = await ProfileExport.create("/dev/full");
    profile.add(concurrency(1), windowOf(0, 1, [{ sent: 0, end: 1 }]));
    await expect(profile.finish(trailer)).rejects.toThrow("ENOSPC");
    expect(await writeReport("/dev/full", "x")).toBe(
      "cannot write /dev/full: ENOSPC: no space left on device, write",
    );
  });
});
