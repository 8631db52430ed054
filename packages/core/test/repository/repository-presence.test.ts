import { mkdtemp, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { VirtualClock } from "../../src/system/clock.js";
import { Triton } from "../../src/triton/triton.js";

it("a server whose repository directory is missing stays ready and logs one warning", async () => {
  const path = await mkdtemp(join(tmpdir(), "tritonjs-gone-"));
  onTestFinished(() => rmdir(path).catch(() => {}));
  const warn = vi.fn();
  const clock = new VirtualClock();
  const logger = { error() {}, warn, info() {}, debug() {} };
  const triton = new Triton({ modelRepository: path, clock, logger });
  onTestFinished(() => triton.close());
  await triton.ready();
  const probe = async () => {
    await clock.advance(10_000);
    return triton.service.checkReady();
  };
  expect(await probe()).toBe(true);
  await rmdir(path);
  for (let i = 0; i < 3; i++) expect(await probe()).toBe(true);
  const text = `failed to stat file ${path}: its loaded models stay in service, but none of its models can be loaded`;
  await expect.poll(() => warn.mock.calls).toEqual([[text]]);
});
