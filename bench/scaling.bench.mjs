/*
 * What do further replicas add on one machine? One to three server processes get as many requests as they can answer:
 * once for a model that waits, as for an accelerator, and once for a model that costs no more than its requests. The
 * law of scalability, fitted to the figures, says what more replicas would add under the same conditions.
 */
import { binaryBody } from "./support/load/http-bodies.mjs";
import { httpLoad } from "./support/load/http-load.mjs";
import { SECONDS } from "./support/pairs.mjs";
import { startProgram } from "./support/program.mjs";
import { report } from "./support/report.mjs";
import { short } from "./support/statistics.mjs";
import { fitUsl, scaleUp } from "./support/usl.mjs";

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
