import { beforeAll, describe, expect, it } from "vitest";
import { promisedOutput } from "../support/example-readme.js";
import type { Ended } from "../support/program.js";
import { curlLines, startQuickstart } from "./support/quickstart.js";

describe("the quick start with --once", () => {
  let ended: Ended;
  beforeAll(async () => {
    ended = await startQuickstart(["--once"]).ended;
  });

  it("exits 0 and writes no errors", () => {
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: "" });
  });

  it("prints what its README promises", () => {
    expect(ended.stdout).toMatch(promisedOutput("quickstart"));
  });

  it("calls the callback in four ways and prints the answers next to the expected one", () => {
    const [, , answers] = /(expected y = \[2, 3, 5\])\n((?: {2}.* y = .*\n)+)/.exec(ended.stdout)!;
    expect(answers!.trimEnd().split("\n")).toEqual([
      "  in process   y = [2, 3, 5]",
      "  HTTP JSON    y = [2, 3, 5]",
      "  HTTP binary  y = [2, 3, 5]",
      "  gRPC         y = [2, 3, 5]",
    ]);
  });

  it("prints the classifier's answers next to the expected labels, for each species and client", () => {
    const rows = [...ended.stdout.matchAll(/^ {2}(\w+ ?\w+) +\[[\d.,]+\] +-> (\w+) +expected (\w+)$/gm)].map(
      ([, way, answer, expected]) => ({ way, answer, expected }),
    );
    expect(new Set(rows.map(({ way }) => way))).toEqual(
      new Set(["in process", "HTTP JSON", "HTTP binary", "gRPC"]),
    );
    expect(new Set(rows.map(({ expected }) => expected))).toEqual(
      new Set(["setosa", "versicolor", "virginica"]),
    );
    expect(rows.filter(({ answer, expected }) => answer === expected).length).toBeGreaterThan(10);
  });

  it("classifies all 150 flowers, at least 97 of 100 correctly", () => {
    const counts = [...ended.stdout.matchAll(/(\d+) of (\d+) right/g)];
    const sum = (column: number) => counts.reduce((total, count) => total + Number(count[column]), 0);
    expect(counts).toHaveLength(4);
    expect(sum(2)).toBe(150);
    expect(sum(1) / sum(2)).toBeGreaterThanOrEqual(0.97);
  });

  it("shows that requests were batched: fewer executions than requests", () => {
    const { requests, executions, batches } = batchesOf(ended.stdout, "iris");
    expect(requests).toBe(150);
    expect(executions).toBeLessThan(requests);
    expect(batches.reduce((sum, { count, size }) => sum + count * size, 0)).toBe(requests);
    expect(batches.reduce((sum, { count }) => sum + count, 0)).toBe(executions);
    expect(Math.max(...batches.map(({ size }) => size))).toBeGreaterThan(1);
    expect(batchesOf(ended.stdout, "linear").requests).toBe(4);
  });

  it("prints its addresses and lines to paste for both models", () => {
    const { stdout } = ended;
    const http = /^HTTP +(http:\/\/localhost:\d+)$/m.exec(stdout)?.[1];
    const metrics = /^metrics +(http:\/\/localhost:\d+\/metrics)$/m.exec(stdout)?.[1];
    expect(stdout).toMatch(/^gRPC +localhost:\d+$/m);
    expect(curlLines(stdout).map(({ url }) => url)).toEqual([
      `${http}/v2/health/ready`,
      `${http}/v2/models/iris`,
      `${http}/v2/models/linear/infer`,
      `${http}/v2/models/iris/infer`,
      `${http}/v2/models/iris/stats`,
      metrics,
    ]);
  });
});

function batchesOf(stdout: string, model: string) {
  const line = new RegExp(`^${model}: (\\d+) requests in (\\d+) executions; batches: (.*)$`, "m").exec(
    stdout,
  );
  const batches = [...line![3]!.matchAll(/(\d+) of (\d+)/g)].map(([, count, size]) => ({
    count: Number(count),
    size: Number(size),
  }));
  return { requests: Number(line![1]), executions: Number(line![2]), batches };
}
