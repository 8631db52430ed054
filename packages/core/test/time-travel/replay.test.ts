import { replayScheduling } from "@tritonjs/core/time-travel";
import { expect, test } from "vitest";
import { CASES, type LoadKind, recordedLoad } from "./recorded-load.js";

test.for(Object.keys(CASES) as LoadKind[])(
  "replays a recorded load to the same batches: %s",
  async (kind) => {
    const tape = await recordedLoad(kind, { seed: 7, count: 40 });
    const replay = await replayScheduling(tape);
    expect(replay).toMatchObject({ identical: true, difference: undefined });
    expect(replay.batches).toBeGreaterThan(5);
    expect(replay.requests).toBeGreaterThan(20);
  },
);
