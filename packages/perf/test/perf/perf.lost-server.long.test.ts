import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { batch, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
// The built package: its threads cannot run sources.
import { perf } from "@tritonjs/perf";
import { expect, it, onTestFinished } from "vitest";
import { ForeignServer } from "../support/foreign-server.js";

/** A server, and how it disappears. */
const SERVERS = {
  http: async () => {
    const server = await ForeignServer.start({ statistics: true, config: true });
    return { url: server.url, kill: () => server.kill() };
  },
  grpc: async () => {
    const triton = new Triton({ exitTimeoutSecs: 0.1, security: { restrictedEndpoints: [] } });
    onTestFinished(() => triton.close());
    triton.bind({
      modelName: "m",
      inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [2] }],
      inferFunc: batch(({ x }) => ({ y: x })),
      config: { maxBatchSize: 4 },
    });
    const { addresses } = await triton.serve({ frontends: [grpc({ port: 0 })] });
    return { url: `127.0.0.1:${addresses.grpc!.port}`, kill: () => void triton.close() };
  },
};

it.each([
  ["http", "--concurrency-range 1:8"],
  ["http", "--request-rate-range 100:800:100"],
  ["grpc", "--concurrency-range 1:8"],
] as const)("ends with 99 and all reports when the %s server disappears with %s", async (kind, load) => {
  const folder = await mkdtemp(join(tmpdir(), "perf-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = (name: string) => join(folder, name);
  const { url, kill } = await SERVERS[kind]();
  let output = "";
  let errors = "";
  let isKilled = false;
  const json = kind === "http" ? ["--input-tensor-format", "json", "--output-tensor-format", "json"] : [];
  const code = await perf(
    [
      ...["-m", "m", "-i", kind, "-u", url, ...load.split(" "), ...json, "--max-threads", "1"],
      ...["--measurement-mode", "count_windows", "--measurement-request-count", "20"],
      ...["-r", "3", "-s", "9999", "-f", file("csv"), "--json", file("json")],
      ...["--html", file("html"), "--profile-export-file", file("profile")],
    ],
    {
      write: (text) => {
        output += text;
      },
      writeError: (text) => {
        errors += text;
        // In the middle of the second level.
        if (isKilled || !/^(concurrency 2|200 requests\/s), window 1:/m.test(errors)) return;
        isKilled = true;
        kill();
      },
      stopRequested: () => new Promise(() => {}),
    },
  );
  expect(code).toBe(99);
  const lost = /(every request failed|no request ended after a failure): /;
  expect(output).toMatch(new RegExp(`\\[ERROR\\] ${lost.source}`));
  const { levels } = JSON.parse(await readFile(file("json"), "utf8"));
  expect(levels.length).toBe(2);
  expect(levels[0].error).toBeUndefined();
  expect(levels[0].server.success_count).toBeGreaterThan(0);
  expect(levels[1].error).toMatch(lost);
  expect(levels[1].request_count.avg).toBeGreaterThan(0);
  const [header, ...rows] = (await readFile(file("csv"), "utf8")).trimEnd().split("\n");
  expect(rows.length).toBe(2);
  // The server could not be asked after the second level.
  const column = header!.split(",").indexOf("Server Queue");
  const first = rows.find((row) => row.startsWith(kind === "http" && load.includes("rate") ? "100," : "1,"));
  expect(first!.split(",")[column]).toMatch(/^\d+$/);
  expect(rows.find((row) => row !== first)!.split(",")[column]).toBe("");
  expect(await readFile(file("html"), "utf8")).toMatch(lost);
  const { experiments } = JSON.parse(await readFile(file("profile"), "utf8"));
  for (const { requests } of experiments) expect(requests.length).toBeGreaterThan(0);
  expect(errors).toContain("[WARNING] The server's statistics could not be read: ");
});
