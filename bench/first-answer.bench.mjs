/*
 * How long does the first step of docs/getting-started.md take on a fresh machine? Packs the packages, and goes through
 * the step in an empty folder with an empty npm cache: `npm init`, the page's `npm install`, and its first program.
 * Other packages come from npm's registry. Install scripts do not run: that of onnxruntime-node downloads CUDA libraries.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../scripts/run.mjs";
import { report } from "./support/report.mjs";
import { median, short } from "./support/statistics.mjs";

const ROUNDS = 3;
/** Packages that the page's packages bring. Here npm finds no released version of them. */
const BROUGHT = ["protocol", "grpc-messages"];

const page = readFileSync(join(root, "docs", "getting-started.md"), "utf8").replaceAll("\r\n", "\n");
const [, step] = /^## 1\. .*?\n(.*?)^## 2\. /ms.exec(page);
const wanted = /^npm install (.+)$/m.exec(step)[1].split(" ");
const [, program] = /^```js\n\/\/ first\.mjs\n(.*?)^```$/ms.exec(step);
const [, promised] = /^```text\n(.*?)^```$/ms.exec(step);

const folder = mkdtempSync(join(tmpdir(), "tritonjs-first-answer-"));
const shell = process.platform === "win32";

/** Runs a program, and returns what it printed and the seconds it took. Throws if it fails. */
function timed(command, args, cwd, env = {}) {
  const start = performance.now();
  const options = { cwd, env: { ...process.env, ...env }, encoding: "utf8", shell };
  const { status, stdout, stderr, error } = spawnSync(command, args, options);
  const seconds = (performance.now() - start) / 1000;
  if (status !== 0) throw error ?? new Error(`${command} ${args.join(" ")} ended with ${status}:\n${stderr}`);
  return { seconds, stdout };
}

const scope = "@tritonjs/";
const own = wanted.filter((name) => name.startsWith(scope)).map((name) => name.slice(scope.length));
const packages = [...own, ...BROUGHT].map((name) => `./packages/${name}`);
timed("npm", ["pack", ...packages, "--ignore-scripts", "--pack-destination", folder], root);
const tarballs = readdirSync(folder).map((file) => join(folder, file));
const others = wanted.filter((name) => !name.startsWith(scope));

const rounds = [];
for (let round = 0; round < ROUNDS; round++) {
  const project = join(folder, `my-models-${round}`);
  mkdirSync(project);
  const env = { npm_config_cache: join(folder, `cache-${round}`) };
  const init = timed("npm", ["init", "-y"], project, env);
  const install = timed("npm", ["install", "--ignore-scripts", ...tarballs, ...others], project, env);
  writeFileSync(join(project, "first.mjs"), program);
  const first = timed(process.execPath, ["first.mjs"], project);
  if (first.stdout !== promised) throw new Error(`expected ${promised}, got ${first.stdout}`);
  rounds.push({ install: init.seconds + install.seconds, program: first.seconds });
}
rmSync(folder, { recursive: true });

const of = (figure) => short(median(rounds.map(figure)));
report("first-answer", {
  rows: {
    "npm init, npm install": { seconds: of(({ install }) => install) },
    "node first.mjs": { seconds: of(({ program }) => program) },
    together: { seconds: of(({ install, program }) => install + program) },
  },
  note: `Median of ${ROUNDS} rounds, each in an empty folder with an empty npm cache. Install scripts did not run.`,
});
