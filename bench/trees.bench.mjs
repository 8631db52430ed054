/*
 * How close does the backend `fil` come to XGBoost's own predictor with one thread, in batches of 1,000 rows, and how far is
 * it from it for single rows, which need no Python in between? 100 trees of depth 6, 30 features.
 *
 * Needs Python with xgboost and numpy: `TRITONJS_PYTHON` names it.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { TreeModel, trees } from "@tritonjs/backends/trees";
import { Triton } from "@tritonjs/core";
import { medianOf, ratioOf, runPairs, SECONDS } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";

const ROWS = 1000;
const COLUMNS = 30;
const python = process.env.TRITONJS_PYTHON ?? "python3";

if (spawnSync(python, ["-c", "import numpy, xgboost"]).status === 0) await compare();
else console.log(`skipped: ${python} has no module xgboost; set TRITONJS_PYTHON to one that has it`);

async function compare() {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-trees-"));
  const program = fileURLToPath(new URL("./programs/xgboost-predict.py", import.meta.url));
  const env = { ...process.env, OMP_NUM_THREADS: "1" };
  const xgboost = spawn(python, [program, folder], { env, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: xgboost.stdout });
  const ask = async (text) => {
    xgboost.stdin.write(text);
    return (await once(lines, "line"))[0];
  };
  await once(lines, "line");
  const model = join(folder, "model.json");
  const floats = (file) => new Float32Array(new Uint8Array(readFileSync(join(folder, file))).buffer);
  const rows = floats("rows.bin");
  const direct = new TreeModel({ model });
  const scores = direct.predict(rows);
  const worst = floats("scores.bin").reduce(
    (most, score, i) => Math.max(most, Math.abs(score - scores[i])),
    0,
  );
  if (worst > 1e-6) throw new Error(`expected XGBoost's scores, got a difference of ${worst}`);
  const triton = new Triton();
  const bound = triton.bind({
    modelName: "bound",
    inferFunc: trees({ model }),
    config: { maxBatchSize: ROWS },
  });
  const one = rows.slice(0, COLUMNS);
  const batch = Array.from({ length: ROWS }, (_, i) => [...rows.subarray(i * COLUMNS, (i + 1) * COLUMNS)]);

  const sides = {
    "batches of 1,000, called directly": [ROWS, () => direct.predict(rows)],
    "single rows, called directly": [1, () => direct.predict(one)],
    "single rows through the server in process": [1, () => bound.inferSample({ input__0: one })],
    "batches of 1,000 through the server in process, from lists": [
      ROWS,
      () => bound.inferBatch({ input__0: batch }),
    ],
  };
  const table = {};
  for (const [name, [count, call]] of Object.entries(sides)) {
    const ours = async () => ({ rate: await callsPerSecond(call) });
    const theirs = async () => ({ rate: Number(await ask(`${count} ${SECONDS}\n`)) });
    const runs = await runPairs(ours, theirs);
    const { ratios, ...ratio } = ratioOf(runs);
    table[name] = {
      "calls a second here": medianOf(runs.ours, ({ rate }) => rate),
      "calls a second of XGBoost": medianOf(runs.reference, ({ rate }) => rate),
      ...ratio,
    };
  }
  await triton.close();
  xgboost.stdin.end();
  rmSync(folder, { recursive: true });
  report("trees", { rows: table, note: "100 trees of depth 6, 30 features.", document: "trees.md" });
}

async function callsPerSecond(call) {
  const start = performance.now();
  let calls = 0;
  do {
    for (let i = 0; i < 10; i++) {
      const result = call();
      if (result instanceof Promise) await result;
    }
    calls += 10;
  } while (performance.now() - start < 1000 * SECONDS);
  return (1000 * calls) / (performance.now() - start);
}
