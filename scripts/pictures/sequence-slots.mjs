import { Triton } from "@tritonjs/core";
import { VirtualClock } from "@tritonjs/testing";
import { bar, drawing, label, timeAxis } from "./drawing.mjs";

/** Sequences: when the client sends each of their requests, in milliseconds. */
const SEQUENCES = {
  A: [0, 6, 12],
  B: [1, 7, 20, 26],
  C: [3, 9, 16, 22],
};
const END_MS = 40;
const STEP_MS = 4;
const ROLES = { A: "one", B: "two", C: "three" };

/** Runs the sequences on an instance with two slots, on a virtual clock. */
async function runSequences() {
  const clock = new VirtualClock();
  const runs = [];
  const triton = new Triton({ clock });
  const model = triton.bind({
    modelName: "m",
    inputs: [{ name: "x", dtype: "BYTES", shape: [1] }],
    outputs: [{ name: "y", dtype: "BYTES", shape: [1] }],
    inferFunc: (requests) => {
      const begin = clock.now();
      // A row of a slot without a request has no sequence.
      for (const { sequence } of requests) {
        if (sequence) runs.push({ id: sequence.correlationId, begin, end: begin + STEP_MS });
      }
      const results = requests.map(({ inputs }) => ({ y: inputs.x }));
      return new Promise((resolve) => clock.setTimer(STEP_MS, () => resolve(results)));
    },
    config: { maxBatchSize: 2, sequence: { strategy: "direct" } },
  });
  await triton.ready();
  const sends = Object.entries(SEQUENCES)
    .flatMap(([id, times]) =>
      times.map((at, i) => ({ at, sequence: { id, start: i === 0, end: i === times.length - 1 } })),
    )
    .sort((a, b) => a.at - b.at);
  const answers = [];
  for (const { at, sequence } of sends) {
    await clock.advance(at - clock.now());
    answers.push(model.inferSample({ x: [sequence.id] }, { sequence }));
  }
  await clock.advance(200);
  await Promise.all(answers);
  await triton.close();
  return runs;
}

/** Sequences in the slots of an instance: computed by the library's own scheduler. */
export async function drawSequenceSlots() {
  const runs = await runSequences();
  const area = { left: 110, right: 800, top: 46, bottom: 268, endMs: END_MS, stepMs: 5 };
  const { x, parts } = timeAxis(area);
  parts.push(
    label(12, 24, "An instance with two slots; sequence C waits in the backlog", { "font-weight": "bold" }),
  );
  for (const [i, [id, times]] of Object.entries(SEQUENCES).entries()) {
    const y = 56 + i * 34;
    parts.push(label(102, y + 15, `${id} is sent`, { anchor: "end", role: "faint" }));
    for (const [n, at] of times.entries()) parts.push(...bar(x(at), y, 26, 22, `${id}${n + 1}`, ROLES[id]));
  }
  // A slot belongs to a sequence from its first run to its last one. The lowest free slot goes to the next sequence.
  const slots = [];
  for (const id of [...new Set(runs.map((run) => run.id))]) {
    const mine = runs.filter((run) => run.id === id);
    const begin = mine[0].begin;
    const slot = slots.findIndex((end) => end <= begin);
    const row = slot === -1 ? slots.length : slot;
    slots[row] = mine.at(-1).end;
    const y = 172 + row * 46;
    parts.push(...bar(x(begin), y, x(mine.at(-1).end) - x(begin), 34, "", "rule"));
    for (const [n, { begin: from, end }] of mine.entries())
      parts.push(...bar(x(from), y + 4, x(end) - x(from), 26, `${id}${n + 1}`, ROLES[id]));
  }
  for (const [row] of slots.entries())
    parts.push(label(102, 194 + row * 46, `slot ${row}`, { anchor: "end" }));
  return drawing(
    820,
    298,
    "Requests of three sequences on a time axis, and the two slots in which they run",
    parts,
  );
}
