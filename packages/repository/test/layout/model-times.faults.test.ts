import { lstat, mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { isModified, readModelTimes } from "../../src/directories/model-directory.js";

vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  return { ...real, lstat: vi.fn(real.lstat) };
});

async function modelDirectory(): Promise<{ directory: string; config: string }> {
  const directory = await mkdtemp(join(tmpdir(), "model-times-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  await mkdir(join(directory, "1"));
  await writeFile(join(directory, "1", "model.js"), "");
  return { directory, config: join(directory, "config.pbtxt") };
}

it.each(["EMFILE", "EIO", "ENOENT"])("does not take the fault %s for a change of the model", async (code) => {
  const { directory, config } = await modelDirectory();
  vi.mocked(lstat).mockRejectedValue(Object.assign(new Error(code), { code }));
  onTestFinished(() => void vi.mocked(lstat).mockReset());
  await expect(readModelTimes(directory, config)).rejects.toThrow(code);
});

it("does not take a file that vanishes during the read for a change of a linked version", async () => {
  const { directory, config } = await modelDirectory();
  await rename(join(directory, "1"), join(directory, "stored"));
  await symlink(join(directory, "stored"), join(directory, "1"));
  const inside = join(directory, "1", "model.js");
  const { lstat: real } = await vi.importActual<typeof import("node:fs/promises")>("node:fs/promises");
  vi.mocked(lstat).mockImplementation((async (path: string, options: object) => {
    if (path === inside) throw Object.assign(new Error("ENOENT"), { code: "ENOENT" });
    return real(path, options);
  }) as typeof lstat);
  onTestFinished(() => void vi.mocked(lstat).mockReset());
  await expect(readModelTimes(directory, config)).rejects.toThrow("ENOENT");
});

it("a link without a target is a part of the model, and its target a change", async () => {
  const { directory, config } = await modelDirectory();
  await symlink(join(directory, "1", "later.bin"), join(directory, "weights.bin"));
  const before = await readModelTimes(directory, config);
  expect(before.others).toBe("weights.bin unreadable");
  expect(isModified(before, await readModelTimes(directory, config))).toBe(false);
  await writeFile(join(directory, "1", "later.bin"), "");
  expect(isModified(before, await readModelTimes(directory, config))).toBe(true);
});
