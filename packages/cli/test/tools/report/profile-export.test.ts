import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ProfileExport } from "../../../src/report/report-files.js";
import { writeReport } from "../../../src/report/write-report.js";
import { concurrency } from "../support/report-run.js";
import { windowOf } from "../support/request-rows.js";

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
