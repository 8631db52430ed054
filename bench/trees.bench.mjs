/*
 * How fast is the backend `fil` beside XGBoost's own predictor with one thread, in batches of 1,000 rows of several models,
 * and for single rows, which need no Python in between? The models have 30 features.
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
/** Models of programs/xgboost-predict.py. */
const MODELS = {
  usual: "100 trees of depth 6",
  thousand: "1,000 trees of depth 6",
  deep: "60 trees of depth 16",
  sparse: "100 trees, 80% of the values missing",
  multiclass: "500 trees of 5 classes",
  categorical: "100 trees, a third of the features categorical",
};
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
  const floats = (file) => new Float32Array(new Uint8Array(readFileSync(join(folder, file))).buffer);
  const sides = {};
  for (const [name, what] of Object.entries(MODELS)) {
    const model = new TreeModel({ model: join(folder, `${name}.json`) });
    const rows = floats(`${name}.rows`);
    const expected = floats(`${name}.scores`);
    const worst = model
      .predict(rows)
      .reduce((most, score, i) => Math.max(most, Math.abs(score - expected[i])), 0);
    if (worst > 1e-6) throw new Error(`expected XGBoost's scores of ${what}, got a difference of ${worst}`);
    sides[`1,000 rows, ${what}`] = [name, ROWS, () => model.predict(rows)];
  }
  const model = join(folder, "usual.json");
  const rows = floats("usual.rows");
  const direct = new TreeModel({ model });
  const triton = new Triton();
  const bound = triton.bind({
    modelName: "bound",
    inferFunc: trees({ model }),
    config: { maxBatchSize: ROWS },
  });
  const one = rows.slice(0, COLUMNS);
  const batch = Array.from({ length: ROWS }, (_, i) => [...rows.subarray(i * COLUMNS, (i + 1) * COLUMNS)]);
  sides["a row"] = ["usual", 1, () => direct.predict(one)];
  sides["a row through the server in process"] = ["usual", 1, () => bound.inferSample({ input__0: one })];
  sides["1,000 rows through the server in process, from lists"] = [
    "usual",
    ROWS,
    () => bound.inferBatch({ input__0: batch }),
  ];
  const table = {};
  for (const [name, [trained, count, call]] of Object.entries(sides)) {
    const ours = async () => ({ rate: await callsPerSecond(call) });
    const theirs = async () => ({ rate: Number(await ask(`${trained} ${count} ${SECONDS}\n`)) });
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
  report("trees", {
    rows: table,
    note: "The models have 30 features. The last three rows are of 100 trees of depth 6.",
    document: "trees.md",
  });
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
