import { replayScheduling } from "@tritonjs/operations/time-travel";
import { configuredBatchers } from "@tritonjs/scheduling";
import { expect, test } from "vitest";
import { CASES, type LoadKind, recordedLoad } from "./recorded-load.js";

const KINDS = Object.keys(CASES) as LoadKind[];

/** Loads to record and replay: one of each kind, or more of them with REPLAY_RUNS=100. */
const RUNS = Number(process.env.REPLAY_RUNS ?? KINDS.length);

test(
  "replays loads of worker instances with real timers and crashes to the same batches",
  async () => {
    const differences: unknown[] = [];
    let batches = 0;
    for (let run = 0; run < RUNS; run++) {
      const kind = KINDS[run % KINDS.length]!;
      const seed = run + 1;
      const tape = await recordedLoad(kind, { seed, count: 150, workers: true });
      const replay = await replayScheduling(tape, { batcherOf: configuredBatchers() });
      batches += replay.batches;
      if (!replay.identical) differences.push({ kind, seed, ...replay.difference });
    }
    expect(differences).toEqual([]);
    expect(batches).toBeGreaterThan(20 * RUNS);
  },
  180_000 + 10_000 * RUNS,
);
