import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

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

describe("a program without close()", () => {
  for (const kind of ["inline", "worker", "process"]) {
    it(`ends after its last call, with an instance of the kind '${kind}'`, async () => {
      expect(await outputOf(kind, "answered")).toBe("answer 3");
    });

    it(`does not end while a call is in flight, with an instance of the kind '${kind}'`, async () => {
      expect(await outputOf(kind, "waiting")).toBe("answer 3");
    });
  }

  for (const kind of ["worker", "process"]) {
    it(`ends while a crashed instance of the kind '${kind}' waits for its restart`, async () => {
      expect(await outputOf(kind, "crashing")).toMatch(/crashed: exited with code 3/);
    });
  }
});
