import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import {
  BUILT_IN,
  BY_PLATFORM,
  CONVERSIONS,
  PACKAGED,
} from "../../packages/core/src/backends/find-backend.js";

it("the table of a Triton repository has every backend and platform that the library knows", async () => {
  const page = await readFile(new URL("../../docs/backends.md", import.meta.url), "utf8");
  const [, section = ""] = /## What a Triton repository says\n([\s\S]*?)\n## /.exec(page) ?? [];
  const named = new Set(
    section.split("\n").flatMap((row) => [...row.matchAll(/`(\w+)`/g)].map(([, name]) => name)),
  );
  const known = [BUILT_IN, PACKAGED, BY_PLATFORM, CONVERSIONS].flatMap((table) => Object.keys(table));
  expect(known.filter((name) => !named.has(name))).toEqual([]);
});
