import { readFileSync } from "node:fs";
import { Tensor } from "@tritonjs/protocol";
import { expect } from "vitest";
import { importModel } from "../../src/optimize/import-model.js";
import type { SklearnFile } from "../../src/optimize/import-sklearn.js";
import { ModelRunner } from "../../src/optimize/model-runner.js";

/** What the script writes of a model, as far as tests read it. */
export type Written = Pick<SklearnFile, "texts" | "names" | "samples">;

export const readWritten = (path: string) => JSON.parse(readFileSync(path, "utf8")) as Written;

/** Runs a converted model on rows, and returns its outputs as lists. */
export async function answersOf(path: string, folder: string, { texts, names, samples: { rows } }: Written) {
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

/** Converts a model, and compares its answers with those of scikit-learn. */
export async function expectAnswers(path: string, folder: string) {
  const written = readWritten(path);
  const answers = await answersOf(path, folder, written);
  const { predicted, probabilities, scores, transformed } = written.samples;
  if (predicted !== undefined) expectSame(answers.get("label") ?? answers.get("prediction"), predicted);
  if (probabilities !== undefined) expectSame(answers.get("probabilities"), probabilities);
  if (scores !== undefined) expectSame(answers.get("scores"), scores);
  if (transformed !== undefined) expectSame(answers.get("transformed"), transformed);
}
