import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { repositoryRoot } from "../support/repository.js";
import type { FuzzTarget } from "./engine/target.js";
import { openTarget, targetNames } from "./targets/index.js";

const corpus = join(repositoryRoot, "test", "fuzz", "corpus");

/** Inputs that once showed a fault. */
function found(target: string): string[] {
  const folder = join(corpus, target);
  return existsSync(folder) ? readdirSync(folder).sort() : [];
}

describe.each(targetNames)("%s", (name) => {
  let target: FuzzTarget | undefined;
  const opened = async () => {
    target ??= await openTarget(name);
    return target;
  };
  afterAll(() => target?.close?.());

  test("the good inputs from which others are made pass", async () => {
    const { seeds, run, check } = await opened();
    for (const seed of seeds) expect(await run(seed)).toEqual(expect.any(String));
    await check?.();
  });

  test.each(found(name))("the input %s, which once showed a fault, passes", async (file) => {
    const { run, check } = await opened();
    await run(readFileSync(join(corpus, name, file)));
    await check?.();
  });
});
