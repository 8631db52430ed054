import { createHash } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { FuzzReport } from "./engine/fuzzer.js";
import { supervise } from "./engine/supervisor.js";
import { targetNames } from "./targets/index.js";

const USAGE = `npm run fuzz -- <target ...> [options]

Sends random inputs to parsers and servers. Faults go to test/fuzz/corpus/<target>, and the exit code is 1.

  --runs N         inputs for each target; 10000 by default
  --seed S         seed of the inputs; a random one by default
  --time T         most seconds for each target
  --hang T         seconds without progress after which a target hangs; 120 by default
  --no-coverage    does not guide the inputs by coverage

Targets: all, ${targetNames.join(", ")}
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: "string", default: "10000" },
    seed: { type: "string" },
    time: { type: "string" },
    hang: { type: "string", default: "120" },
    "no-coverage": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
    /** Folder of findings. */
    corpus: { type: "string" },
  },
});
const names = positionals.includes("all") ? targetNames : positionals;
const unknown = names.filter((name) => !targetNames.includes(name));
if (values.help || names.length === 0 || unknown.length > 0) {
  if (unknown.length > 0) console.error(`unknown target: ${unknown.join(", ")}\n`);
  console.error(USAGE);
  process.exit(values.help ? 0 : 2);
}

async function fuzz(target: string): Promise<number> {
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : count("seed", values.seed);
  const start = performance.now();
  let findings = 0;
  const reports = await supervise({
    target,
    program: fileURLToPath(new URL("./fuzz-process.js", import.meta.url)),
    seed,
    runs: count("runs", values.runs),
    ...(values.time === undefined ? {} : { timeMs: 1000 * count("time", values.time) }),
    hangMs: 1000 * count("hang", values.hang),
    coverage: !values["no-coverage"],
    onFinding({ input, text }) {
      findings++;
      console.log(`${target}: ${text}\n  ${save(target, input)}`);
    },
    onProgress: (report) => console.log(line(target, seed, report, start)),
  });
  const runs = reports.reduce((sum, report) => sum + report.runs, 0);
  const last = reports.at(-1);
  const minutes = (performance.now() - start) / 60_000;
  rows.push(
    `| ${target} | ${seed} | ${runs} | ${minutes.toFixed(0)} | ${findings} | ${mb(last?.growthBytes ?? 0)} MB |`,
  );
  if (last !== undefined) console.log(`${line(target, seed, { ...last, runs, findings }, start)} END`);
  for (const [outcome, number] of Object.entries(last?.outcomes ?? {}).slice(0, 20)) {
    console.log(`  ${String(number).padStart(9)} ${outcome}`);
  }
  return findings;
}

/** Writes an input to the corpus, and returns its path. */
function save(target: string, input: Uint8Array): string {
  const folder = join(values.corpus ?? join(process.cwd(), "test", "fuzz", "corpus"), target);
  const path = join(folder, createHash("sha256").update(input).digest("hex").slice(0, 12));
  mkdirSync(folder, { recursive: true });
  if (!existsSync(path)) writeFileSync(path, input);
  return path;
}

function line(target: string, seed: number, report: FuzzReport, start: number): string {
  const { runs, functions, kept, usedBytes, growthBytes, rssBytes } = report;
  const seconds = (performance.now() - start) / 1000;
  return (
    `${target}: seed ${seed}, ${runs} inputs in ${seconds.toFixed(0)} s, ${functions} functions, ${kept} kept, ` +
    `${report.findings} findings, ${mb(usedBytes)} MB used (${mb(growthBytes)} grown), ${mb(rssBytes)} MB RSS`
  );
}

const mb = (bytes: number): string => (bytes / 1e6).toFixed(1);

function count(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0 && text.trim() !== "") return value;
  console.error(`--${name}: expected a non-negative integer, got '${text}'`);
  process.exit(2);
}

const rows = ["| target | seed | inputs | minutes | faults | memory grown |", "|---|---|---|---|---|---|"];
let found = 0;
for (const name of names) found += await fuzz(name);
console.log(`\n${rows.join("\n")}`);
process.exitCode = found > 0 ? 1 : 0;
