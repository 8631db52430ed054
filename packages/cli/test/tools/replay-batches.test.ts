import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { replayTrace } from "@tritonjs/cli/tools";
import { batch, Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/core/testing";
import { recordScheduling } from "@tritonjs/core/time-travel";
import { expect, onTestFinished, test } from "vitest";

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "tapes-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function run(...args: string[]) {
  let [output, errors] = ["", ""];
  const terminal = {
    write: (text: string) => {
      output += text;
    },
    writeError: (text: string) => {
      errors += text;
    },
    stopRequested: () => new Promise<void>(() => {}),
  };
  const code = await replayTrace(args, terminal);
  return { code, output, errors };
}

/** Two batches: of request a, and of the three that came while it ran. */
async function recordTwoBatches(file: string): Promise<void> {
  const clock = new VirtualClock();
  const triton = new Triton({ clock, schedulingTape: recordScheduling({ file }) });
  const model = triton.bind({
    modelName: "slow",
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: batch(async ({ x }) => {
      await new Promise<void>((resolve) => clock.setTimer(10, resolve));
      return { y: x };
    }),
    config: { maxBatchSize: 4 },
  });
  await triton.ready();
  const sent = [model.infer({ x: [[1]] }, { id: "a" })];
  await clock.advance(2);
  for (const id of ["b", "c", "d"])
    sent.push(model.infer({ x: [[1]] }, { id, parameters: { caller: "shop" } }));
  await clock.advance(30);
  await Promise.all(sent);
  const closed = triton.close();
  await clock.advance(1);
  await closed;
}

test("replays a recording to the same batches, and says for whom a request waited", async () => {
  const file = join(temporaryFolder(), "minute.tape");
  await recordTwoBatches(file);
  const { code, output } = await run(file, "--batches", "--explain", "c");
  expect(code).toBe(0);
  expect(output).toContain("minute.tape: 4 requests, 2 batches, identical\n");
  expect(output).toContain("request 'c' (#2) of shop to model 'slow' version 1, 1 rows, priority 0");
  expect(output).toContain("waited 8.000 ms, behind 1 request: 'b' (#1)");
  expect(output).toContain("meanwhile ran 1 batch: #0 of 1 rows");
  expect(output).toContain("shared it with 2 requests: 'b' (#1), 'd' (#3)");
  expect(output).toContain("answered at 20.000 ms");
});

test("exits with 1 and names the first batch that differs", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "minute.tape");
  await recordTwoBatches(file);
  const bytes = readFileSync(file);
  // As if the model had allowed batches of two rows.
  const changed = Buffer.from(
    bytes.toString("latin1").replace('"maxBatchSize":4', '"maxBatchSize":2'),
    "latin1",
  );
  writeFileSync(file, changed);
  const { code, output } = await run(file, "--batches");
  expect(code).toBe(1);
  expect(output).toMatch(
    /then a difference at [\d.]+ ms of model 'slow': expected batch 1 of requests 1, 2, 3 /,
  );
  expect(output).toMatch(/got batch 1 of requests 1, 2 at instance 0, cut by SIZE/);
});

test("refuses files that are not recordings, and requests that are not in a recording", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "minute.tape");
  await recordTwoBatches(file);
  expect((await run(file, "--explain", "z")).errors).toContain(
    "the recording has no request 'z': expected the id of a request, or a number below 4",
  );
  const cut = join(folder, "cut.tape");
  writeFileSync(cut, readFileSync(file).subarray(0, -8));
  expect((await run(cut, "--batches")).errors).toContain("is not a recording of the scheduling: expected");
  writeFileSync(cut, "[]");
  expect((await run(cut, "--batches")).errors).toContain('begins with {"format":"tritonjs-scheduling"');
  expect(await run(join(folder, "none.tape"), "--batches")).toMatchObject({ code: 1 });
});
