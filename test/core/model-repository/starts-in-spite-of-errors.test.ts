import { Triton } from "@tritonjs/core";
import { expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../support/repository-on-disk.js";

/** A logger that keeps its error lines. */
function errorLines() {
  const lines: string[] = [];
  return { lines, logger: { error: (line: string) => lines.push(line), warn() {}, info() {}, debug() {} } };
}

const broken = identityConfig().replace(/(output .*)TYPE_FP32/, "$1TYPE_INT32");

it("logs that not all models are loaded, after the reasons, when the server goes on", async () => {
  await using models = await RepositoryOnDisk.create({ "x/config.pbtxt": broken, "x/1/": "" });
  const { lines, logger } = errorLines();
  await using triton = new Triton({ modelRepository: models.path, exitOnError: false, logger });
  await triton.ready();
  expect(lines).toEqual([
    expect.stringContaining("failed to load 'x' version 1: "),
    "Internal: failed to load all models",
  ]);
});

it("leaves that line to the caller who is told of the error", async () => {
  await using models = await RepositoryOnDisk.create({ "x/config.pbtxt": broken, "x/1/": "" });
  const { lines, logger } = errorLines();
  await using triton = new Triton({ modelRepository: models.path, logger });
  await expect(triton.ready()).rejects.toThrow("failed to load all models");
  expect(lines).toEqual([expect.stringContaining("failed to load 'x' version 1: ")]);
});

it("logs that a repository is missing when the server goes on", async () => {
  const { lines, logger } = errorLines();
  await using triton = new Triton({ modelRepository: "/nonexistent/repo", exitOnError: false, logger });
  await triton.ready();
  expect(lines).toEqual(["Internal: failed to stat file /nonexistent/repo"]);
  expect(triton.service.isReady()).toBe(false);
});

it("does not take an empty path for the current directory", async () => {
  const { logger } = errorLines();
  await using triton = new Triton({ modelRepository: "", logger });
  await expect(triton.ready()).rejects.toThrow(/^failed to stat file $/);
});
