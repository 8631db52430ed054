/*
 * What does a Python model cost? Compares a model that doubles its input with the same model in TypeScript: as a
 * callback on the server's thread, and as a module in a process of its own. The processor time is that of a request in
 * the server and in the model's process. Needs python3 with numpy, and Linux.
 */
import { medianOf, ratioOf, runPairs, SECONDS, short } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";

const rows = {};
for (const [kind, batched] of [
  ["callback", true],
  ["callback", false],
  ["process", true],
]) {
  const python = await startProgram("python-model", { kind: "python", batched });
  const reference = await startProgram("python-model", { kind });
  for (const [size, concurrency] of [
    [16, 1],
    [16, 16],
    [16, 64],
    [150_000, 16],
    [1 << 20, 1],
    [1 << 20, 4],
  ]) {
    const call = (program) => () => program.call("run", size, concurrency, SECONDS);
    const runs = await runPairs(call(python), call(reference));
    const { ratios: _, ...ratio } = ratioOf(runs);
    const micros = (one) => short(1e6 / medianOf(one, ({ rate }) => rate));
    rows[`${kind}${batched ? "" : ", Python without batching"}, FP32[${size}], ${concurrency} at a time`] = {
      "µs in Python": micros(runs.ours),
      "µs in TypeScript": micros(runs.reference),
      ...ratio,
      "CPU µs in Python": medianOf(runs.ours, ({ cpuMicroseconds }) => cpuMicroseconds),
      "CPU µs in TypeScript": medianOf(runs.reference, ({ cpuMicroseconds }) => cpuMicroseconds),
    };
  }
  await Promise.all([reference.stop(), python.stop()]);
}

console.table(rows);
