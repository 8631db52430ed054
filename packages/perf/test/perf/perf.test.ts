import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { serviceOf } from "@tritonjs/server";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import type { MeasureClock } from "../../src/measure/measure-level.js";
import { openTriton } from "../../src/perf/open-target.js";
import { readAssertions } from "../../src/perf/run-verdict.js";
import { temporaryFolder } from "../support/analyze-command.js";
import { LoopLoad, LoopTime } from "../support/loop-load.js";
import { runPerf } from "../support/perf-command.js";
import { concurrency, levelOf, requests, serverOf } from "../support/report-run.js";
import type { SimulatedServer } from "../support/simulated-load.js";
import { VirtualTime } from "../support/virtual-time.js";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "perf-"));
});

afterAll(() => rm(folder, { recursive: true }));

/** 10 ms for each request, one after the other. */
const server = { serviceMs: () => 10 };

describe("tritonjs perf", () => {
  it("measures the levels of a range, reports each, and ends with 0", async () => {
    const csv = join(folder, "range.csv");
    const { code, output, load } = await runPerf(
      ["-m", "m", "--concurrency-range", "1:5:2", "-f", csv],
      server,
    );
    expect(code).toBe(0);
    expect(output.match(/^Request concurrency: \d$/gm)).toEqual([
      "Request concurrency: 1",
      "Request concurrency: 3",
      "Request concurrency: 5",
    ]);
    expect(output).toMatch(/\nConcurrency: 5, throughput: 100 infer\/sec, latency \d+ usec\n$/);
    expect((await readFile(csv, "utf8")).split("\n").length).toBe(5);
    expect(load.isClosed).toBe(true);
  });

  it("counts inferences: requests times the batch size", async () => {
    const { output } = await runPerf(["-m", "m", "-b", "4", "--request-count", "30"], server);
    expect(output).toContain("Request count: 30\n    Throughput: 400 infer/sec");
  });

  it("finds the highest level within the limit, and says so", async () => {
    const { code, output } = await runPerf(
      ["-m", "m", "--concurrency-range", "1:32", "--binary-search", "-l", "75"],
      server,
    );
    expect(code).toBe(0);
    expect(output).toMatch(/Highest level within the latency limit: Concurrency: 7, /);
  });

  it("sends a fixed schedule once", async () => {
    const { code, output } = await runPerf(["-m", "m", "--fixed-schedule", "--input-data", "a.json"], server);
    expect(code).toBe(0);
    expect(output).toContain("Request count: 3\n");
  });

  it("measures a spike in three phases", async () => {
    const { output } = await runPerf(["-m", "m", "--request-rate-spike", "20:300:2s"], server);
    const titles = output.match(/^Request Rate: \d+ inf.*\)$/gm);
    expect(titles?.map((title) => title.slice(14))).toEqual([
      "20 inference requests per seconds (before)",
      "300 inference requests per seconds (peak)",
      "20 inference requests per seconds (after)",
    ]);
  });

  it("ends with 1 when a condition does not hold, and names the level and the value", async () => {
    const args = ["-m", "m", "--concurrency-range", "2", "--assert", "p99<15ms,throughput>90,error_rate<1%"];
    const { code, errors } = await runPerf(args, server);
    expect(code).toBe(1);
    expect(errors).toContain("[FAILED] p99<15ms does not hold at concurrency 2: it is 20\n");
    expect(errors).not.toContain("throughput>90");
  });

  it("ends with 2 when a level is not stable, after all reports", async () => {
    const csv = join(folder, "unstable.csv");
    const slower = { serviceMs: (_: number, start: number) => 5 + (start - 1_000_000) / 2000 };
    const { code, output } = await runPerf(["-m", "m", "-r", "4", "-f", csv], slower);
    expect(code).toBe(2);
    expect(output).toContain("(unstable)");
    expect(existsSync(csv)).toBe(true);
  });

  it("ends with 3 when no request ends within a window", async () => {
    const { code, output } = await runPerf(["-m", "m"], { serviceMs: () => 1e9 });
    expect(code).toBe(3);
    expect(output).toContain("[ERROR] No valid requests recorded within time interval.");
  });

  it("keeps what was measured when the server is gone in the middle", async () => {
    const json = join(folder, "gone.json");
    const { code, output } = await runPerf(["-m", "m", "--concurrency-range", "1:8", "--json", json], {
      serviceMs: () => 10,
      errorFor: (i) => (i >= 2000 ? "cannot connect to localhost:8000" : undefined),
    });
    expect(code).toBe(99);
    expect(output).toContain("[ERROR] every request failed: cannot connect to localhost:8000");
    const { levels } = JSON.parse(await readFile(json, "utf8"));
    expect(levels.map(({ stable }: { stable: boolean }) => stable)).toEqual([true, false]);
    expect(levels[1].request_count.avg).toBe(500);
  });

  it("reports the levels so far after an interruption, and ends with 130", async () => {
    let interrupt = (_: unknown) => {};
    const stop = new Promise<unknown>((resolve) => {
      interrupt = resolve;
    });
    const csv = join(folder, "interrupted.csv");
    const { code, output } = await runPerf(
      ["-m", "m", "--concurrency-range", "1:100", "-f", csv],
      {
        serviceMs: (i) => {
          if (i === 2500) interrupt(undefined);
          return 10;
        },
      },
      { stop },
    );
    expect(code).toBe(130);
    expect(output).toContain("(interrupted)");
    expect((await readFile(csv, "utf8")).split("\n").length).toBeGreaterThan(2);
  });

  it.skipIf(!existsSync("/dev/full"))("tells of a full disk, after the report in the terminal", async () => {
    const html = join(folder, "full.html");
    const { code, output, errors } = await runPerf(
      ["-m", "m", "-f", "/dev/full", "--profile-export-file", "/dev/full", "--html", html],
      server,
    );
    expect(code).toBe(99);
    expect(output).toContain("throughput: 100 infer/sec");
    expect(errors.match(/^error: cannot write \/dev\/full: ENOSPC/gm)?.length).toBe(2);
    expect(existsSync(html)).toBe(true);
  });

  it("ends with the server's text for an unknown model", async () => {
    const testbed = {
      openTarget: () =>
        Promise.reject(new TritonError("NOT_FOUND", "Request for unknown model: 'm' is not found")),
    };
    const { code, errors } = await runPerf(["-m", "m"], server, { testbed });
    expect(code).toBe(99);
    expect(errors).toBe("error: Not found: Request for unknown model: 'm' is not found\n");
  });

  it("shows help with examples and exit codes, and its version", async () => {
    const help = await runPerf(["--help"], server);
    expect(help.code).toBe(0);
    expect(help.output).toContain("Examples:\n  $ tritonjs perf -m resnet --concurrency-range 1:32:4");
    expect(help.output).toContain("130  interrupted");
    expect((await runPerf(["--version"], server)).output).toMatch(/^\d+\.\d+\.\d+/);
  });
});

describe("perf load", () => {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "perf-"));
  });

  afterAll(() => rm(folder, { recursive: true }));

  /** Runs the command with the project's loop on a virtual clock. */
  async function runOnLoop(line: string, server: SimulatedServer) {
    const clock = new LoopTime();
    let load: LoopLoad | undefined;
    const startGenerator = async (_target: unknown, _data: unknown, { seed }: { readonly seed?: number }) => {
      load = new LoopLoad(clock, server, seed);
      return load;
    };
    const end = await runPerf(["-m", "m", ...line.split(" ")], server, {
      testbed: { clock, startGenerator },
    });
    return { ...end, load: load! };
  }

  const quick = { serviceMs: () => 1 };

  /** Number of sends in each second. */
  function countsBySecond(sentAt: readonly number[]): number[] {
    const counts: number[] = [];
    for (const time of sentAt) {
      const second = Math.floor(time / 1000);
      counts[second] = (counts[second] ?? 0) + 1;
    }
    return counts;
  }

  describe("the load of perf", () => {
    it("sends at the gaps of --request-intervals, from the first again after the last", async () => {
      const gaps = join(folder, "gaps");
      await writeFile(gaps, "100000\n200000\n500000\n");
      const { code, load } = await runOnLoop(`--request-intervals ${gaps} --request-count 7`, quick);
      expect(code).toBe(0);
      expect(load.sentAt.map((time) => Math.round(time))).toEqual([100, 300, 800, 900, 1100, 1600, 1700]);
    });

    it.each([
      ["0:200:10s", (second: number) => 10 + 20 * second],
      ["200:100:10s", (second: number) => 195 - 10 * second],
    ])("moves the rate of --request-rate-ramp %s linearly", async (ramp, countIn) => {
      const { code, load } = await runOnLoop(`--request-rate-ramp ${ramp}`, quick);
      expect(code).toBe(0);
      const counts = countsBySecond(load.sentAt);
      for (let second = 0; second < 10; second++)
        expect(Math.abs(counts[second]! - countIn(second))).toBeLessThanOrEqual(1);
    });

    it("moves the requests in flight of --concurrency-ramp from one number to the other", async () => {
      const { code, load, output } = await runOnLoop("--concurrency-ramp 1:8:7s", { serviceMs: () => 10 });
      expect(code).toBe(0);
      expect(load.mostInFlight.slice(0, 7)).toEqual([1, 2, 3, 4, 5, 6, 7]);
      expect(output).toContain("Request concurrency: 8 (ramp)");
    });

    it("has another Poisson schedule with another --seed, and the same one with the same", async () => {
      const timesOf = async (seed: number) => {
        const line = `--request-rate-range 100 --request-distribution poisson --request-count 50 --seed ${seed}`;
        return (await runOnLoop(line, quick)).load.sentAt;
      };
      const times = await timesOf(7);
      expect(await timesOf(7)).toEqual(times);
      expect(await timesOf(8)).not.toEqual(times);
    });
  });

  /** Most requests take 5 ms, and each 20th takes 100 ms: 9.75 ms on average. */
  const uneven = { serviceMs: (i: number) => (i % 20 === 7 ? 100 : 5) };

  describe("a latency limit", () => {
    it.each([
      ["", ["1", "2", "3"]],
      [" --percentile 50", ["1", "2", "3", "4"]],
      [" --percentile 99", ["1"]],
    ])("judges a sweep with '%s' by the right figure", async (percentile, levels) => {
      const { code, output } = await runOnLoop(`--concurrency-range 1:4 -l 25${percentile}`, uneven);
      expect(code).toBe(0);
      expect(output.match(/(?<=^Concurrency: )\d+/gm)).toEqual(levels);
      expect(output.includes("Measured latency went over the set limit of 25 msec.")).toBe(
        percentile !== " --percentile 50",
      );
    });

    it.each([
      ["", "Highest level within the latency limit: Concurrency: 3, "],
      [" --percentile 50", "Highest level within the latency limit: Concurrency: 6, "],
      [" --percentile 99", "No measured level meets the latency limit."],
    ])("judges a binary search with '%s' by the right figure", async (percentile, result) => {
      const { code, output } = await runOnLoop(
        `--concurrency-range 1:16 --binary-search -l 32${percentile}`,
        uneven,
      );
      expect(code).toBe(0);
      expect(output).toContain(result);
    });

    it("is searched over request rates too", async () => {
      const { code, output } = await runOnLoop("--request-rate-range 10:300:10 --binary-search -l 15", {
        serviceMs: () => 10,
      });
      expect(code).toBe(0);
      expect(output).toMatch(/Highest level within the latency limit: Request Rate: (9\d|100), /);
    });
  });
});

describe("perf metrics", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  /** A clock that runs the timers of the process while it sleeps. */
  class TimerTime extends VirtualTime implements MeasureClock {
    override async sleep(ms: number, signal: AbortSignal): Promise<void> {
      await vi.advanceTimersByTimeAsync(ms);
      await super.sleep(ms, signal);
    }
  }

  /** Number of reads of the metrics page during 3 windows of 2 seconds. */
  async function readsOf(...options: string[]): Promise<number> {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    let reads = 0;
    const clock = new TimerTime();
    const { code } = await runPerf(
      ["-m", "m", "-p", "2000", "--collect-metrics", ...options],
      { serviceMs: () => 10 },
      {
        clock,
        target: {
          metricsPage: async () => {
            reads++;
            return "nv_cpu_utilization 0.5\n";
          },
        },
      },
    );
    expect(code).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
    return reads;
  }

  it.each([
    ["each second by default", [], 6],
    ["at --metrics-interval", ["--metrics-interval", "250"], 24],
  ])("reads the metrics page %s, and at both ends of a level", async (_, options, inBetween) => {
    expect(await readsOf(...options)).toBe(inBetween + 2);
  });
});

const level = levelOf(
  concurrency(1),
  [
    ...requests(99),
    { sent: 0, times: [5, 10], tokens: [1, 1], end: 1000 },
    { sent: 0, end: 5, error: "gone" },
  ],
  { server: serverOf(100) },
  true,
);

const holds = (text: string) => readAssertions(text).map((one) => one.holds(one.valueIn(level)));

describe("assertions", () => {
  it.each([
    ["p50<=10.1ms, p50<9.9ms, p50 > 9900us", [true, false, true]],
    ["p99.9>0.9s,max>=1000,min<10001us,avg<20", [true, true, true, true]],
    ["throughput==100,request_throughput>=100", [true, true]],
    ["errors==1,error_rate<1%,error_rate<0.5%", [true, true, false]],
    ["queue<=1ms,queue<1ms", [true, false]],
    ["time_to_first_token.p50<10ms,output_sequence_length>1", [true, false]],
    ["goodput>0,output_token_throughput>1", [true, true]],
  ])("the conditions %s give %s", (text, expected) => {
    expect(holds(text)).toEqual(expected);
  });

  it("a figure that was not measured meets no condition", () => {
    const plain = levelOf(concurrency(1), requests(1));
    for (const text of ["queue<5", "queue>=0", "goodput>=0", "time_to_first_token<100"]) {
      const [one] = readAssertions(text);
      expect(one!.holds(one!.valueIn(plain))).toBe(false);
    }
  });
});

const TENSORS = `
  input { name: "INPUT0" data_type: TYPE_FP32 dims: 1 }
  output { name: "OUTPUT0" data_type: TYPE_FP32 dims: 1 }`;

const IDENTITY = `backend: "identity" max_batch_size: 2 ${TENSORS}`;

const CONFIGS = {
  step: IDENTITY,
  called: IDENTITY,
  other: IDENTITY,
  pair: `platform: "ensemble" max_batch_size: 2 ${TENSORS} ensemble_scheduling { step {
    model_name: "step" model_version: -1
    input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } }`,
};

async function writeModels(): Promise<string> {
  const repository = join(await temporaryFolder(), "repository");
  for (const [name, text] of Object.entries(CONFIGS)) {
    await mkdir(join(repository, name, "1"), { recursive: true });
    await writeFile(join(repository, name, "config.pbtxt"), text);
  }
  return repository;
}

/** Warnings of the process, which are not written. */
function heardWarnings(): string[] {
  const heard: string[] = [];
  const spy = vi.spyOn(process, "emitWarning").mockImplementation((text) => void heard.push(String(text)));
  onTestFinished(() => spy.mockRestore());
  return heard;
}

describe("open triton", () => {
  it("loads the measured model, the steps of an ensemble and the called models, and no other", async () => {
    const triton = await openTriton({ repository: await writeModels(), calledModels: ["called"] }, "pair");
    onTestFinished(() => triton.close());
    const ready = Object.keys(CONFIGS).filter((name) => serviceOf(triton).isModelReady(name, ""));
    expect(ready).toEqual(["step", "called", "pair"]);
  });

  it("leaves the message about a model that cannot be loaded to its caller", async () => {
    const heard = heardWarnings();
    await expect(openTriton({ repository: await writeModels() }, "absent")).rejects.toThrow("'absent'");
    expect(heard).toEqual([]);
  });

  it("warns of a called model that cannot be loaded, and measures without it", async () => {
    const heard = heardWarnings();
    const triton = await openTriton({ repository: await writeModels(), calledModels: ["absent"] }, "step");
    onTestFinished(() => triton.close());
    expect(serviceOf(triton).isModelReady("step", "")).toBe(true);
    expect(heard).toEqual([expect.stringContaining("'absent'")]);
  });

  it("names a model that the repository does not have", async () => {
    await expect(openTriton({ repository: await writeModels() }, "absent")).rejects.toThrow("'absent'");
  });
});
