import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { expectAnswers } from "./sklearn-answers.js";

const scripts = fileURLToPath(new URL("../../python/export/", import.meta.url));

const folder = mkdtempSync(join(tmpdir(), "sklearn-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Starting a Python with its libraries takes long on a busy machine. */
const PATIENCE_MS = 300_000;

const python = ["python3", "/usr/bin/python3"].find(
  (one) => spawnSync(one, ["-c", "import sklearn"]).status === 0,
);

describe.skipIf(python === undefined)(
  "the script, with the scikit-learn of this machine",
  { timeout: PATIENCE_MS },
  () => {
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
      await expectAnswers(target, folder);
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
  },
);
