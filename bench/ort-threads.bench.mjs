/*
 * How many threads should a session of ONNX Runtime have on the CPU, and how many instances a model? Compares all
 * combinations that make sense on this machine with one instance with one thread.
 */
import { availableParallelism } from "node:os";
import { medianOf, PAIRS, ratioOf, SECONDS } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";
import { short } from "./support/statistics.mjs";

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

async function measure(program) {
  await program.call("use");
  const { rate } = await program.call("run", SECONDS);
  const { cpuMs } = await program.call("use");
  return { rate, cpu: cpuMs / SECONDS / rate };
}

const rows = {};
const one = { model: "mlp", rows: ROWS, threads: 1, instances: 1 };
const reference = await startProgram("ort-threads", one);
await measure(reference);
for (const combination of combinations) {
  const program = await startProgram("ort-threads", { ...one, ...combination });
  await measure(program);
  const runs = { ours: [], reference: [] };
  for (let pair = 0; pair < Math.min(PAIRS, 3); pair++) {
    runs.ours.push(await measure(program));
    runs.reference.push(await measure(reference));
  }
  await program.stop();
  const { ratio } = ratioOf(runs);
  const { threads, instances, spins } = combination;
  rows[`${instances} x ${threads}${spins ? ", spinning" : ""}`] = {
    "rows a second": medianOf(runs.ours, ({ rate }) => rate),
    "of 1 x 1": ratio,
    "CPU µs a row": short(1000 * medianOf(runs.ours, ({ cpu }) => cpu)),
  };
}
await reference.stop();

report("ort-threads", {
  rows,
  document: "backends.md",
  note: `Instances x threads, an MLP of 5.3 million weights, batches of ${ROWS} rows, ${cores} cores.`,
});
