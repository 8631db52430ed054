import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Tensor } from "@tritonjs/protocol";
import { afterAll, describe, expect, it } from "vitest";
import { importModel } from "../../src/optimize/import-model.js";
import { ModelRunner } from "../../src/optimize/model-runner.js";

const fixtures = fileURLToPath(new URL("./fixtures/sklearn/", import.meta.url));
const scripts = fileURLToPath(new URL("../../python/export/", import.meta.url));

const folder = mkdtempSync(join(tmpdir(), "sklearn-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Written {
  readonly texts: number[];
  readonly names: string[];
  readonly samples: {
    readonly rows: (number | string)[][];
    readonly predicted?: (number | string | number[])[];
    readonly probabilities?: number[][];
    readonly scores?: number[][];
    readonly transformed?: number[][];
  };
}

const read = (path: string) => JSON.parse(readFileSync(path, "utf8")) as Written;

/** Runs a converted model on rows, and returns its outputs as lists. */
async function answersOf(path: string, { texts, names, samples: { rows } }: Written) {
  const runner = await ModelRunner.open(await importModel(path, folder));
  const doubles = (width: number, values: number[]) =>
    Tensor.fromElements("FP64", [rows.length, width], Float64Array.from(values));
  const inputs =
    texts.length === 0
      ? [["X", doubles(rows[0]!.length, rows.flat().map(Number))] as const]
      : rows[0]!.map((_, i) => {
          const column = rows.map((row) => row[i]!);
          const words = () =>
            Tensor.fromElements(
              "BYTES",
              [rows.length, 1],
              column.map((one) => Buffer.from(String(one))),
            );
          return [names[i] ?? `x${i}`, texts.includes(i) ? words() : doubles(1, column.map(Number))] as const;
        });
  const results = await runner.run(new Map(inputs));
  await runner.close();
  const list = (value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString() : Number(value);
  return new Map(
    [...results].map(([name, { elements }]) => [name, Array.from(elements as ArrayLike<unknown>, list)]),
  );
}

function expectSame(given: readonly (string | number)[] | undefined, expected: readonly unknown[]) {
  const wanted = expected.flat() as (string | number)[];
  expect(given).toHaveLength(wanted.length);
  for (const [i, value] of wanted.entries()) {
    if (typeof value === "string") expect(given![i]).toBe(value);
    else expect(Math.abs(Number(given![i]) - value)).toBeLessThanOrEqual(1e-5 * Math.max(1, Math.abs(value)));
  }
}

async function expectAnswers(path: string) {
  const written = read(path);
  const answers = await answersOf(path, written);
  const { predicted, probabilities, scores, transformed } = written.samples;
  if (predicted !== undefined) expectSame(answers.get("label") ?? answers.get("prediction"), predicted);
  if (probabilities !== undefined) expectSame(answers.get("probabilities"), probabilities);
  if (scores !== undefined) expectSame(answers.get("scores"), scores);
  if (transformed !== undefined) expectSame(answers.get("transformed"), transformed);
}

describe("models of scikit-learn answer what predict and predict_proba do, to 1e-5", () => {
  it.each(readdirSync(fixtures))("%s", (name) => expectAnswers(join(fixtures, name)));

  it("texts that the encoder did not see count as no category", async () => {
    const written = read(join(fixtures, "columns.json"));
    const rows = [
      ["violet", "s", 50, 0],
      ["violet", "unknown", 50, 0],
    ];
    const answers = await answersOf(join(fixtures, "columns.json"), { ...written, samples: { rows } });
    expect(answers.get("probabilities")!.every(Number.isFinite)).toBe(true);
  });
});

describe("files that are faulty are refused", () => {
  const change = (name: string, edit: (text: string) => string) => {
    const path = join(folder, `changed-${name}`);
    writeFileSync(path, edit(readFileSync(join(fixtures, name), "utf8")));
    return importModel(path, folder);
  };

  it("a file that is cut, and one of another format", async () => {
    await expect(change("linear.json", (text) => text.slice(0, 400))).rejects.toThrow(
      /cannot read the scikit-learn model '.*': expected whole JSON/,
    );
    await expect(
      change("linear.json", (text) => text.replace('"tritonjs_sklearn": 1', '"tritonjs_sklearn": 9')),
    ).rejects.toThrow("expected format 1, got 9");
  });

  it("answers that are not those of scikit-learn", async () => {
    const edit = (text: string) => {
      const file = JSON.parse(text) as { steps: { offset?: number[] }[] };
      file.steps[0]!.offset![0]! += 0.5;
      return JSON.stringify(file);
    };
    await expect(change("linear.json", edit)).rejects.toThrow(
      /output 'prediction' of the converted model: expected .*, as scikit-learn answers, got/,
    );
  });
});

const python = ["python3", "/usr/bin/python3"].find(
  (one) => spawnSync(one, ["-c", "import sklearn"]).status === 0,
);

describe.skipIf(python === undefined)("the script, with the scikit-learn of this machine", () => {
  const run = (code: string) => {
    const model = join(folder, "model.pkl");
    const target = join(folder, "model.json");
    rmSync(target, { force: true });
    const saved = spawnSync(
      python!,
      ["-c", `${code}\nimport joblib\njoblib.dump(model, ${JSON.stringify(model)})`],
      {
        encoding: "utf8",
      },
    );
    expect(saved.stderr).not.toContain("Error");
    const { status, stderr } = spawnSync(python!, [join(scripts, "sklearn_to_json.py"), model, target], {
      encoding: "utf8",
    });
    return { status, stderr, target };
  };

  it("writes a pipeline that answers the same", async () => {
    const { status, target } = run(`
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.linear_model import LogisticRegression
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(*load_iris(return_X_y=True))`);
    expect(status).toBe(0);
    await expectAnswers(target);
  });

  it("names what it does not convert", () => {
    const { status, stderr } = run(`
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier
model = KNeighborsClassifier().fit(*load_iris(return_X_y=True))`);
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /cannot convert .*model\.pkl: KNeighborsClassifier is not converted: expected .*StandardScaler/,
    );
  });
});
