import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runPerf } from "../support/perf-command.js";

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
