import { Triton } from "@tritonjs/core";
import { Log } from "@tritonjs/core/frontend";
import type { ModelIndexEntry } from "@tritonjs/protocol";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { reportProgress } from "../../src/serve/serve.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("progress reports end without an error when the server closes while models load", async () => {
  const triton = new Triton();
  reportProgress(triton.service);
  await triton.close();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(vi.getTimerCount()).toBe(0);
});

it("progress reports name the models that still load every ten seconds, until stopped", async () => {
  const lines: string[] = [];
  const log = new Log({ error() {}, warn() {}, info: (line) => lines.push(line), debug() {} });
  let index: ModelIndexEntry[] = [
    { name: "big", version: "1", state: "LOADING" },
    { name: "small", version: "2", state: "READY" },
  ];
  await using triton = new Triton();
  const service = Object.create(triton.service, {
    log: { value: log },
    repositoryIndex: { value: async () => index },
  });
  const progress = reportProgress(service);
  await vi.advanceTimersByTimeAsync(9_999);
  expect(lines).toEqual([]);
  await vi.advanceTimersByTimeAsync(10_001);
  expect(lines).toEqual(["still loading after 10 seconds: big:1", "still loading after 20 seconds: big:1"]);
  index = [];
  await vi.advanceTimersByTimeAsync(10_000);
  progress.stop();
  index = [{ name: "big", version: "1", state: "LOADING" }];
  await vi.advanceTimersByTimeAsync(60_000);
  expect(lines).toHaveLength(2);
});
