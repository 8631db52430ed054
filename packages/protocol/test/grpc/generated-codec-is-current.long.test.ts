import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

test("the checked-in codec equals the one generated from the .proto files", {
  timeout: 300_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), "tritonjs-proto-"));
  try {
    const script = fileURLToPath(new URL("../../scripts/generate-proto.mjs", import.meta.url));
    await promisify(execFile)(process.execPath, [script, folder]);
    for (const file of ["index.js", "index.d.ts", "descriptors.js", "descriptors.d.ts"]) {
      const checkedIn = await readFile(new URL(`../../src/grpc/generated/${file}`, import.meta.url), "utf8");
      expect(await readFile(join(folder, file), "utf8")).toBe(checkedIn);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
