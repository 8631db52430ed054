import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { hasPython, withoutPython } from "../../../test/support/python.js";
import { repositoryRoot } from "../../../test/support/repository.js";

const run = promisify(execFile);
const program = fileURLToPath(new URL("./fixtures/ends-without-close.mjs", import.meta.url));

/** Output of the program. It rejects if the program does not end by itself with exit code 0. */
async function outputOf(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [program, ...args], {
    timeout: 150_000,
    killSignal: "SIGKILL",
  });
  return stdout.trim();
}

describe("a program without close() ends after its last call", () => {
  for (const isolation of ["worker", "process"]) {
    it(`with an ONNX model in a ${isolation}`, async () => {
      const model = join(repositoryRoot, "examples/model-repository/models/classify/1/model.onnx");
      expect(await outputOf("onnxruntime", model, isolation)).toMatch(/^answer /);
    });
  }

  it.skipIf(!hasPython)(`with a Python model${withoutPython}`, async () => {
    const directory = mkdtempSync(join(tmpdir(), "tritonjs-end-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const model = join(directory, "model.py");
    writeFileSync(
      model,
      `import time
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.1)
        return [pb.InferenceResponse([pb.Tensor("y", pb.get_input_tensor_by_name(r, "x").as_numpy())]) for r in requests]
`,
    );
    expect(await outputOf("python", model)).toBe("answer y");
  });
});
