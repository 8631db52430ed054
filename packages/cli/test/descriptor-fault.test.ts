import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { descriptorFault } from "../src/descriptor-fault.js";

const main = fileURLToPath(new URL("../dist/main.js", import.meta.url));

/** The command gets this limit, and a module that it imports first leaves some of the descriptors free. */
const LIMIT = 100;

const leaving = (free: number) => `data:text/javascript,
  import { closeSync, openSync } from "node:fs";
  const taken = [];
  try { for (;;) taken.push(openSync("/dev/null")); } catch {}
  for (const one of taken.slice(0, ${free})) closeSync(one);`;

describe.skipIf(process.platform === "win32")("serve with too few open files", () => {
  it.each([1, 2])("names the limit and the remedy when %d can be opened", async (free) => {
    const repository = mkdtempSync(join(tmpdir(), "tritonjs-descriptors-"));
    onTestFinished(() => rmSync(repository, { recursive: true }));
    const flags = `--model-repository=${repository} --http-port 0 --grpc-port 0 --metrics-port 0`;
    const command = `ulimit -n ${LIMIT} && exec "$0" --import "$1" "$2" serve ${flags}`;
    const { stderr, ...outcome } = await new Promise<{ code: unknown; stdout: string; stderr: string }>(
      (resolve) => {
        const args = ["-c", command, process.execPath, leaving(free), main];
        execFile("/bin/sh", args, (error, stdout, stderr) => resolve({ code: error?.code, stdout, stderr }));
      },
    );
    expect(outcome, stderr).toEqual({ code: 1, stdout: "" });
    const last = stderr.trimEnd().split("\n").at(-1);
    expect(last, stderr).toBe(
      `error: too many open files: this process may have ${LIMIT}; raise the limit, for instance with 'ulimit -n 4096'`,
    );
  });
});

describe("a start-up error", () => {
  it("names the limit when its cause is the number of open files", () => {
    const cause = Object.assign(new Error("listen EMFILE"), { code: "EMFILE" });
    expect(descriptorFault(new Error("cannot listen", { cause }))).toMatch(
      /^error: too many open files: this process may have \d+; raise the limit/,
    );
  });

  it("keeps its text for any other cause", () => {
    expect(descriptorFault(new Error("port 8000 is already in use"))).toBeUndefined();
    expect(descriptorFault(undefined)).toBeUndefined();
  });
});
