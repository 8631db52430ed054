import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { importModel } from "../../src/optimize/import-model.js";
import { answersOf, expectAnswers, readWritten } from "./sklearn-answers.js";

const fixtures = fileURLToPath(new URL("./fixtures/sklearn/", import.meta.url));

const folder = mkdtempSync(join(tmpdir(), "sklearn-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("models of scikit-learn answer what predict and predict_proba do, to 1e-5", () => {
  it.each(readdirSync(fixtures))("%s", (name) => expectAnswers(join(fixtures, name), folder));

  it("texts that the encoder did not see count as no category", async () => {
    const written = readWritten(join(fixtures, "columns.json"));
    const rows = [
      ["violet", "s", 50, 0],
      ["violet", "unknown", 50, 0],
    ];
    const answers = await answersOf(join(fixtures, "columns.json"), folder, {
      ...written,
      samples: { rows },
    });
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
