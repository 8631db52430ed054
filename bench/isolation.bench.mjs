/*
 * What does each isolation of an instance cost, and what does it keep away from the event loop? The CPU time of a call
 * by the size of its tensor, and how late timers fire by the time that the model computes.
 */
import { median, PAIRS, SECONDS, short } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

const ISOLATIONS = ["inline", "worker", "process"];
const BYTE_SIZES = [64, 1024, 16_384, 262_144, 4_194_304];
const COMPUTE_MS = [1, 3, 10, 30, 100];

const programs = new Map();
for (const isolation of ISOLATIONS) programs.set(isolation, await startProgram("isolation", { isolation }));

// The first calls run code that is not compiled yet.
for (const program of programs.values()) await program.call("run", BYTE_SIZES[0], 2);

/** Medians of a call of all programs, in turns, by isolation. */
async function mediansOf(call) {
  const runs = new Map(ISOLATIONS.map((isolation) => [isolation, []]));
  for (const program of programs.values()) await call(program);
  for (let round = 0; round < PAIRS; round++) {
    for (const [isolation, program] of programs) runs.get(isolation).push(await call(program));
  }
  return new Map([...runs].map(([isolation, all]) => [isolation, short(median(all))]));
}

const rows = {};
const ofEach = () => Object.fromEntries(ISOLATIONS.map((isolation) => [isolation, {}]));
const measured = { cost: ofEach(), delay: ofEach() };
async function measure(name, which, x, call) {
  const medians = await mediansOf(call);
  rows[name] = Object.fromEntries(medians);
  for (const [isolation, y] of medians) measured[which][isolation][x] = y;
}

for (const byteSize of BYTE_SIZES)
  await measure(`CPU µs, ${byteSize} B`, "cost", byteSize, (program) =>
    program.call("run", byteSize, SECONDS),
  );
for (const computeMs of COMPUTE_MS)
  await measure(`timer delay ms, ${computeMs} ms`, "delay", computeMs, (program) =>
    program.call("delayOf", computeMs, SECONDS),
  );
for (const program of programs.values()) await program.stop();

report("isolation", {
  rows,
  measured,
  document: "instances.md",
  note: "One request at a time. CPU time is that of the whole process, and of the instance's process.",
});
