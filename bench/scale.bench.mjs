/* Does a request cost more with more models, queued requests or instances? Compares CPU time with that at the smallest size. */
import { medianOf, ratioOf, runPairs } from "./support/pairs.mjs";
import { drawRatios } from "./support/plots.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const ROOMY_HEAP = ["--min-semi-space-size=256", "--max-semi-space-size=256"];

const rows = {};
const ratios = [];

/** @param measure returns the microseconds of each kind of work, at a size */
async function atSizes(sizes, label, programs, measure, target) {
  const [smallest, ...others] = sizes;
  for (const size of others) {
    const runs = await runPairs(
      () => measure(programs.get(size), size),
      () => measure(programs.get(smallest), smallest),
    );
    for (const work of Object.keys(runs.ours[0])) {
      const { ratios: all, ...ratio } = ratioOf(runs, (run) => run[work]);
      const name = `${label(size)}: ${work}`;
      rows[name] = {
        "CPU µs here": medianOf(runs.ours, (run) => run[work]),
        "CPU µs smallest": medianOf(runs.reference, (run) => run[work]),
        ...ratio,
      };
      ratios.push({ label: name, ...ratio, target });
    }
  }
}

/** Measures each size in a process of its own. */
async function withPrograms(sizes, prepare, work, options = {}) {
  const programs = new Map();
  for (const size of sizes) {
    const program = await startProgram("scale", options);
    await prepare(program, size);
    programs.set(size, program);
  }
  await work(programs);
  for (const program of programs.values()) await program.stop();
}

const models = [1, 10, 1000];
await withPrograms(
  models,
  (program, size) => program.call("bindModels", size),
  (programs) =>
    atSizes(
      models,
      (size) => `${size} models`,
      programs,
      (program) => program.call("requestCost"),
      1.1,
    ),
);
const queues = [10, 1000, 100_000];
const queueRows = (suffix, options) =>
  withPrograms(
    queues,
    () => {},
    (programs) =>
      atSizes(
        queues,
        (size) => `${size} queued${suffix}`,
        programs,
        (program, size) => program.call("queueCost", size),
      ),
    options,
  );
await queueRows("", {});
// Measures again with a young generation that has room for all requests, so that V8 need not copy waiting ones to the
// old generation.
await queueRows(", collector idle", { nodeOptions: ROOMY_HEAP });
const instances = [1, 2, 4, 8];
await withPrograms(
  instances,
  () => {},
  (programs) =>
    atSizes(
      instances,
      (size) => `${size} instances`,
      programs,
      async (program, size) => ({
        request: await program.call("instanceCost", size),
      }),
    ),
);

report("scale", {
  rows,
  plots: {
    "": [drawRatios, "CPU time of a request, compared with the smallest size (less is better)", ratios],
  },
});
