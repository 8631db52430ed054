import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { descriptorFault } from "../src/descriptor-fault.js";

const main = fileURLToPath(new URL("../dist/main.js", import.meta.url));

describe.skipIf(process.platform === "win32")("serve with too few open files", () => {
  it.each([20, 32])("ends with one line that names the limit of %d and the remedy", async (limit) => {
    const command = `ulimit -n ${limit} && exec "$0" "$1" serve --model-repository=/`;
    const outcome = await new Promise<object>((resolve) => {
      execFile("/bin/sh", ["-c", command, process.execPath, main], (error, stdout, stderr) =>
        resolve({ code: error?.code, stdout, stderr }),
      );
    });
    expect(outcome).toEqual({
      code: 1,
      stdout: "",
      stderr: `error: too many open files: this process may have ${limit}; raise the limit, for instance with 'ulimit -n 4096'\n`,
    });
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
