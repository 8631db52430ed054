import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { at, busyShare, type Comparison, compare } from "./compare.js";
import { type Panel, type Series, svg } from "./plot.js";
import { CAPTION, table } from "./report.js";
import { SCENARIOS, type Scenario } from "./scenario.js";
import { adaptive, fixed, ONE_BY_ONE, type Setting } from "./setting.js";

const DOCUMENT = "docs/batching.md";
const PICTURE = "docs/images/adaptive-batching.svg";

/** Runs everything, and puts the table and the picture into the documents. Resolves with the table. */
export async function writeReport(root: string, progress: (text: string) => void): Promise<string> {
  const comparisons: Comparison[] = [];
  for (const scenario of SCENARIOS) {
    progress(scenario.name);
    comparisons.push(await compare(scenario));
  }
  const text = `${CAPTION}\n\n${table(comparisons)}`;
  const path = join(root, DOCUMENT);
  const document = readFileSync(path, "utf8");
  writeFileSync(
    path,
    document.replace(
      /(<!-- simulation -->\n).*(\n<!-- \/simulation -->)/s,
      (_, begin, end) => begin + text + end,
    ),
  );
  progress("picture");
  const picture = join(root, PICTURE);
  mkdirSync(dirname(picture), { recursive: true });
  writeFileSync(picture, svg(await panels()));
  return text;
}

/** Answers in time, and machine time, over the load of the GPU-like model. */
async function panels(): Promise<Panel[]> {
  const scenario = SCENARIOS[0]!;
  const { maxBatchSize, targetMs } = scenario;
  const settings: readonly (Omit<Series, "points"> & { readonly setting: Setting })[] = [
    { name: "adaptive", color: "#1a7f37", setting: adaptive(scenario) },
    { name: "eager", color: "#0969da", dash: "6 3", setting: fixed(0, maxBatchSize) },
    { name: "20 ms delay", color: "#bc4c00", dash: "2 3", setting: fixed(0.4 * targetMs, maxBatchSize) },
    { name: "one by one", color: "#57606a", dash: "8 2 2 2", setting: ONE_BY_ONE },
  ];
  const rates = Array.from({ length: 26 }, (_, i) => 50 + i * 250);
  const inTime: Series[] = [];
  const busy: Series[] = [];
  for (const { setting, ...style } of settings) {
    const outcomes = await load(scenario, setting, rates);
    inTime.push({ ...style, points: outcomes.map(({ rate, inTime }) => [rate, inTime]) });
    busy.push({ ...style, points: outcomes.map(({ rate, busy }) => [rate, busy]) });
  }
  const axis = { xLabel: "requests per second", xMax: rates.at(-1)! };
  return [
    { title: `Answered within ${targetMs} ms`, yLabel: "requests", ...axis, series: inTime },
    { title: "Machine time", yLabel: "busy", ...axis, series: busy },
  ];
}

async function load(scenario: Scenario, setting: Setting, rates: readonly number[]) {
  const outcomes = [];
  for (const rate of rates) {
    const outcome = await at(scenario, setting, rate / 1000);
    outcomes.push({ rate, inTime: 1 - outcome.missed / outcome.sent, busy: busyShare(scenario, outcome) });
  }
  return outcomes;
}
