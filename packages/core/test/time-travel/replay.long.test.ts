import { replayScheduling } from "@tritonjs/core/time-travel";
import { expect, test } from "vitest";
import { CASES, type LoadKind, recordedLoad } from "./recorded-load.js";

const RUNS = 100;

test("replays 100 of 100 loads of worker instances with real timers to the same batches, bit for bit", async () => {
  const kinds = Object.keys(CASES) as LoadKind[];
  const faults: unknown[] = [];
  let batches = 0;
  for (let run = 0; run < RUNS; run++) {
    const kind = kinds[run % kinds.length]!;
    const tape = await recordedLoad(kind, { seed: run + 1, count: 150, workers: true });
    const replay = await replayScheduling(tape);
    batches += replay.batches;
    if (!replay.identical) faults.push({ run, kind, ...replay.difference });
  }
  expect(faults).toEqual([]);
  expect(batches).toBeGreaterThan(20 * RUNS);
}, 600_000);
