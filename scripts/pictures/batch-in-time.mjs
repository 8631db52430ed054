import { Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/testing";
import { bar, drawing, label, timeAxis } from "./drawing.mjs";

/** Arrivals in milliseconds, and the rows of each request. */
const ARRIVALS = [
  [0, 1],
  [1, 1],
  [3, 2],
  [6, 1],
  [8, 1],
  [9, 2],
  [11, 1],
  [22, 1],
];
const END_MS = 40;
const ROLES = ["one", "two", "three", "four"];

/** Runs the requests through a model on a virtual clock, and returns what each of its batches had. */
async function runBatches() {
  const clock = new VirtualClock();
  const batches = [];
  const triton = new Triton({ clock });
  const model = triton.bind({
    modelName: "m",
    inputs: [{ name: "id", dtype: "INT32", shape: [1] }],
    outputs: [{ name: "y", dtype: "INT32", shape: [1] }],
    // 6 ms for a batch, and 1 ms for each row.
    inferFunc: (requests) => {
      const ids = requests.map(({ inputs }) => inputs.id.get(0, 0));
      const rows = requests.reduce((sum, { inputs }) => sum + inputs.id.shape[0], 0);
      const begin = clock.now();
      batches.push({ ids, rows, begin, end: begin + 6 + rows });
      const results = requests.map(({ inputs }) => ({ y: inputs.id }));
      return new Promise((resolve) => clock.setTimer(6 + rows, () => resolve(results)));
    },
    config: { maxBatchSize: 4, batcher: { maxQueueDelayMicroseconds: 2000 } },
  });
  await triton.ready();
  const answers = [];
  for (const [i, [at, rows]] of ARRIVALS.entries()) {
    await clock.advance(at - clock.now());
    answers.push(model.inferBatch({ id: Array.from({ length: rows }, () => [i]) }));
  }
  await clock.advance(100);
  await Promise.all(answers);
  await triton.close();
  return batches;
}

/** How requests that come one by one become batches: computed by the library's own batcher. */
export async function drawBatchInTime() {
  const batches = await runBatches();
  const area = { left: 90, right: 800, top: 46, bottom: 330, endMs: END_MS, stepMs: 5 };
  const { x, parts } = timeAxis(area);
  parts.push(
    label(12, 24, "One instance; at most 4 rows; a delay of at most 2 ms", { "font-weight": "bold" }),
  );
  for (const [i, [at, rows]] of ARRIVALS.entries()) {
    const y = 56 + i * 26;
    const index = batches.findIndex(({ ids }) => ids.includes(i));
    const { begin, end } = batches[index];
    parts.push(label(82, y + 14, `${rows} ${rows === 1 ? "row" : "rows"}`, { anchor: "end", role: "faint" }));
    parts.push(...bar(x(at), y, x(begin) - x(at), 18, "", "rule"));
    parts.push(...bar(x(begin), y, x(end) - x(begin), 18, `batch ${index + 1}`, ROLES[index % ROLES.length]));
  }
  parts.push(label(82, 300, "instance", { anchor: "end" }));
  for (const [index, { begin, end, rows }] of batches.entries()) {
    const text = `${rows} ${rows === 1 ? "row" : "rows"}`;
    parts.push(...bar(x(begin), 284, x(end) - x(begin), 24, text, ROLES[index % ROLES.length]));
  }
  return drawing(
    820,
    360,
    "Eight requests on a time axis, the batches that they join, and the instance that runs them",
    parts,
  );
}
