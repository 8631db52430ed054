/*
 * How many threads should a session of ONNX Runtime have on the CPU, and how many instances a model? Compares all
 * combinations that make sense on this machine with one instance with one thread.
 */
import { availableParallelism } from "node:os";
import { medianOf, PAIRS, ratioOf, SECONDS, short } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const ROWS = 8;
const cores = availableParallelism();
const upTo = (most) => [1, 2, 4, 8, 16, 32, 64, 128].filter((n) => n < most).concat(most);

const combinations = [];
for (const threads of upTo(cores)) {
  for (const instances of upTo(2 * cores)) {
    // More threads than twice the cores would only take turns.
    if (threads * instances > 2 * cores) continue;
    combinations.push({ threads, instances });
    if (threads > 1 && instances === 1) combinations.push({ threads, instances, spins: true });
  }
}

async function measure(program, inFlight) {
  await program.call("use");
  const { rate } = await program.call("run", SECONDS, inFlight);
  const { cpuMs } = await program.call("use");
  return { rate, cpu: cpuMs / SECONDS / rate };
}

const rows = {};
const measured = [];
const one = { model: "mlp", rows: ROWS, threads: 1, instances: 1 };
const reference = await startProgram("ort-threads", one);

/** Runs a combination and one instance with one thread in turns. */
async function compare(program, inFlight) {
  await measure(program, inFlight);
  await measure(reference, inFlight);
  const runs = { ours: [], reference: [] };
  for (let pair = 0; pair < Math.min(PAIRS, 3); pair++) {
    runs.ours.push(await measure(program, inFlight));
    runs.reference.push(await measure(reference, inFlight));
  }
  return { ...runs, ratio: ratioOf(runs).ratio };
}

for (const combination of combinations) {
  const program = await startProgram("ort-threads", { ...one, ...combination });
  const { threads, instances, spins = false } = combination;
  const alone = await compare(program, 1);
  const busy = await compare(program, 2 * instances);
  await program.stop();
  rows[`${instances} x ${threads}${spins ? ", spinning" : ""}`] = {
    "rows a second": medianOf(busy.ours, ({ rate }) => rate),
    "of 1 x 1": busy.ratio,
    "of 1 x 1, one batch at a time": alone.ratio,
    "CPU µs a row": short(1000 * medianOf(busy.ours, ({ cpu }) => cpu)),
  };
  if (!spins) measured.push({ instances, threads, busy: busy.ratio, alone: alone.ratio });
}
await reference.stop();

report("ort-threads", {
  rows,
  measured: { combinations: measured },
  document: "backends.md",
  note: `Instances x threads, an MLP of 13.7 million weights, batches of ${ROWS} rows, ${cores} cores.`,
});
