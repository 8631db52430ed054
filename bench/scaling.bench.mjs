/*
 * What do further replicas add on one machine? One to three server processes get as many requests as they can answer:
 * once for a model that waits, as for an accelerator, and once for a model that costs no more than its requests. The
 * law of scalability, fitted to the figures, says what more replicas would add under the same conditions.
 */
import { binaryBody, httpLoad } from "./support/load.mjs";
import { SECONDS, short } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";

/**
 * Fits the universal scalability law to throughputs: X(n) = n·X(1) / (1 + contention·(n - 1) + coherence·n·(n - 1)). By
 * least squares over its linear form; without a coherence term this is Amdahl's law.
 *
 * @param rates throughput by number of replicas, with one for 1
 */
export function fitUsl(rates) {
  const points = [...rates]
    .filter(([n]) => n > 1)
    .map(([n, rate]) => {
      const share = rate / rates.get(1);
      return { a: n - 1, b: n * (n - 1), y: n / share - 1 };
    });
  const sum = (of) => points.reduce((all, point) => all + of(point), 0);
  const [aa, ab, bb] = [sum(({ a }) => a * a), sum(({ a, b }) => a * b), sum(({ b }) => b * b)];
  const [ay, by] = [sum(({ a, y }) => a * y), sum(({ b, y }) => b * y)];
  const determinant = aa * bb - ab * ab;
  const both = {
    contention: (ay * bb - by * ab) / determinant,
    coherence: (by * aa - ay * ab) / determinant,
  };
  // A negative term would promise more than linear growth, which only noise makes.
  if (both.coherence < 0) return { contention: Math.max(0, ay / aa), coherence: 0 };
  if (both.contention < 0) return { contention: 0, coherence: Math.max(0, by / bb) };
  return both;
}

/** Throughput of `n` replicas by the law, relative to one. */
export function scaleUp(n, { contention, coherence }) {
  return n / (1 + contention * (n - 1) + coherence * n * (n - 1));
}

const WAIT_MS = 50;
const CONNECTIONS = 4;
const ROUNDS = 5;
const COUNTS = [1, 2, 3];
const PREDICTED = [4, 8];

const replicas = [];
for (const _ of COUNTS) replicas.push(await startProgram("replica", { waitMs: WAIT_MS }));
const urls = await Promise.all(replicas.map((replica) => replica.call("url")));

/** Answers a second of the first `count` replicas together. */
async function rateOf(model, count) {
  const { path, ...request } = binaryBody(model, [1, 4]);
  const loads = urls
    .slice(0, count)
    .map((url) => httpLoad({ ...request, url: url + path }, CONNECTIONS, SECONDS));
  return (await Promise.all(loads)).reduce((sum, { rate }) => sum + rate, 0);
}

const rows = {};
const measured = [];
for (const [name, model] of [
  ["a model that waits", "wait"],
  ["a model that costs nothing", "echo"],
]) {
  await rateOf(model, COUNTS.length);
  const all = new Map(COUNTS.map((count) => [count, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const count of COUNTS) all.get(count).push(await rateOf(model, count));
  }
  const rates = new Map([...all].map(([count, measured]) => [count, Math.max(...measured)]));
  const law = fitUsl(rates);
  const row = {};
  for (const [count, rate] of rates) row[`${count} (requests/s)`] = short(rate);
  row.contention = law.contention.toFixed(3);
  row.coherence = law.coherence.toFixed(3);
  for (const count of PREDICTED) row[`${count} by the law`] = `${scaleUp(count, law).toFixed(2)}x`;
  rows[name] = row;
  const alone = rates.get(1);
  measured.push({
    name: name.replace("a model that ", ""),
    rates: Object.fromEntries([...rates].map(([count, rate]) => [count, short(rate / alone)])),
    predicted: Object.fromEntries(PREDICTED.map((count) => [count, short(scaleUp(count, law))])),
  });
}
for (const replica of replicas) await replica.stop();

const note =
  `All replicas and the clients share the machine. Each figure is the best of ${ROUNDS} rounds, the one that other work ` +
  "disturbed least. The law has two parameters and is fitted to two ratios, so it says how this machine would " +
  "continue, not how a larger one would.";
report("scaling", { rows, measured: { models: measured }, note, document: "scaling.md" });
