import { Triton } from "@tritonjs/core";
import { expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

/** A logger that keeps its error lines. */
function errorLines() {
  const lines: string[] = [];
  return { lines, logger: { error: (line: string) => lines.push(line), warn() {}, info() {}, debug() {} } };
}

const broken = identityConfig().replace(/(output .*)TYPE_FP32/, "$1TYPE_INT32");

it("a server that ignores load errors logs that not all models are loaded, after the reasons", async () => {
  await using models = await RepositoryOnDisk.create({ "x/config.pbtxt": broken, "x/1/": "" });
  const { lines, logger } = errorLines();
  await using triton = new Triton({ modelRepository: models.path, exitOnError: false, logger });
  await triton.ready();
  expect(lines).toEqual([
    expect.stringContaining("failed to load 'x' version 1: "),
    "Internal: failed to load all models",
  ]);
});

it("a failed load that rejects ready() does not log that line", async () => {
  await using models = await RepositoryOnDisk.create({ "x/config.pbtxt": broken, "x/1/": "" });
  const { lines, logger } = errorLines();
  await using triton = new Triton({ modelRepository: models.path, logger });
  await expect(triton.ready()).rejects.toThrow("failed to load all models");
  expect(lines).toEqual([expect.stringContaining("failed to load 'x' version 1: ")]);
});

it("a server that ignores load errors logs that its repository is missing", async () => {
  const { lines, logger } = errorLines();
  await using triton = new Triton({ modelRepository: "/nonexistent/repo", exitOnError: false, logger });
  await triton.ready();
  expect(lines).toEqual(["Internal: failed to stat file /nonexistent/repo"]);
  expect(triton.service.isReady()).toBe(false);
});

it("an empty repository path does not mean the current directory", async () => {
  const { logger } = errorLines();
  await using triton = new Triton({ modelRepository: "", logger });
  await expect(triton.ready()).rejects.toThrow(/^failed to stat file $/);
});
