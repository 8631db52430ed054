/*
 * What does a Python model cost? Compares a model that doubles its input with the same model in TypeScript: as a
 * callback on the server's thread, and as a module in a process of its own. Needs python3 with numpy.
 */
import { medianOf, ratioOf, runPairs, SECONDS } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { short } from "./support/statistics.mjs";

const rows = {};
const python = await startProgram("python-model", { kind: "python" });
for (const kind of ["callback", "process"]) {
  const reference = await startProgram("python-model", { kind });
  for (const [size, concurrency] of [
    [16, 1],
    [16, 64],
    [1 << 20, 1],
    [1 << 20, 4],
  ]) {
    const call = (program) => () => program.call("run", size, concurrency, SECONDS);
    const runs = await runPairs(call(python), call(reference));
    const { ratios: _, ...ratio } = ratioOf(runs);
    const micros = (one) => short(1e6 / medianOf(one, ({ rate }) => rate));
    rows[`${kind}, FP32[${size}], ${concurrency} at a time`] = {
      "µs in Python": micros(runs.ours),
      "µs in TypeScript": micros(runs.reference),
      ...ratio,
    };
  }
  await reference.stop();
}
await python.stop();

console.table(rows);
