import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { afterAll, describe, expect, it } from "vitest";
import { repositoryRoot } from "../../../../test/support/repository.js";
import {
  generateSamples,
  ModelRunner,
  makeVariant,
  OnnxModel,
  prepareModel,
  VARIANTS,
  writeVariant,
} from "../../src/optimize/index.js";

const folder = mkdtempSync(join(tmpdir(), "tritonjs-forms-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** ONNX's own checker, which Debian's python3-onnx has for the system's Python. */
const PYTHON = "/usr/bin/python3";
const hasChecker = spawnSync(PYTHON, ["-c", "import onnx.checker"]).status === 0;
const withoutChecker = hasChecker ? "" : " (skipped: python3-onnx is not installed)";

/** The ONNX files that are checked in. */
const files = execFileSync("git", ["ls-files", "*.onnx"], { cwd: repositoryRoot, encoding: "utf8" })
  .trim()
  .split("\n");

/** Shapes of inputs that do not take any. */
const SHAPES: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>> = {
  "examples/speech-recognition/models/encoder/1/encoder.onnx": { speech: [1, 120, 80] },
};

/** Largest size of a form as a share of the file. */
const MOST: Partial<Record<(typeof VARIANTS)[number], number>> = {
  "dynamic-int8": 0.28,
  fp16: 0.52,
  "fp16-weights": 0.52,
};

/** Networks whose weights are FP32 and most of the file. Those for speech store int8 already. */
const isTrained = (path: string) =>
  /^examples\/(tutorials|text-generation)\/.*\/model\.onnx$/.test(path) &&
  statSync(join(repositoryRoot, path)).size > 100_000;

describe("forms of the networks of this repository", { timeout: 300_000 }, () => {
  it.each(files)("%s in all forms runs on ONNX Runtime", async (path) => {
    const model = await OnnxModel.read(join(repositoryRoot, path));
    const prepared = await prepareModel(model);
    const { size: original } = statSync(join(repositoryRoot, path));
    const first = await ModelRunner.open(join(repositoryRoot, path));
    const samples = generateSamples(model, first.inputs, { count: 2, shapes: SHAPES[path] ?? {} });
    const outputs = [...(await first.run(samples[0]!)).keys()];
    await first.close();
    for (const name of VARIANTS) {
      const form = await makeVariant(name, prepared, { samples }).catch((error: unknown) => {
        // Networks without matrices of 256 elements keep them.
        if (TritonError.is(error) && error.message.includes("it has no layer that this changes"))
          return undefined;
        throw error;
      });
      if (form === undefined) continue;
      const file = join(folder, `${relative("examples", path).replaceAll("/", "-")}-${name}.onnx`);
      const bytes = await writeVariant(form.model, file);
      if (isTrained(path)) expect(bytes / original, name).toBeLessThanOrEqual(MOST[name] ?? 1);
      const runner = await ModelRunner.open(file);
      expect([...(await runner.run(samples[0]!)).keys()], name).toEqual(outputs);
      await runner.close();
    }
  });

  it.skipIf(!hasChecker)(`pass ONNX's checker${withoutChecker}`, () => {
    const written = readdirSync(folder).map((file) => join(folder, file));
    expect(written.length).toBeGreaterThan(2 * files.length);
    const program = [
      "import sys, onnx",
      "for path in sys.argv[1:]:",
      "    try: onnx.checker.check_model(path)",
      "    except Exception as error: print(path, error)",
    ].join("\n");
    const faults = execFileSync(PYTHON, ["-c", program, ...written], { encoding: "utf8" });
    expect(faults.replaceAll(folder, "")).toBe("");
    expect(written.map((file) => basename(file))).toContain(
      "speech-recognition-models-decoder-1-decoder.onnx-int4-weights.onnx",
    );
  });
});
