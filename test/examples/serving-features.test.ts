import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

/** What each example prints. */
const examples: Readonly<Record<string, readonly string[]>> = {
  decorators: [
    "2 rows, temperature 0.5, length 4",
    "1 rows, temperature 0.1, length 2",
    "100 105 110 115",
    "200 201 -1 -1",
    "300 305 310 315",
    "1 rows, temperature 0.7, length 2",
    "7 14",
  ],
  "response-cache": ['computing "hello"', 'computing "world"', "hits 2, misses 2"],
  priorities: [
    "running 0",
    "running 101, 102",
    "running 1, 2",
    "running 3",
    "answered 0",
    "answered 1",
    "answered 2",
    "answered 3",
    "refused 4: UNAVAILABLE",
    "answered 101",
    "answered 102",
  ],
};

describe("the example", () => {
  it.each(Object.entries(examples))("%s runs to its end and shows what it is about", async (name, lines) => {
    const module = join(repositoryRoot, "examples", name, "dist", "main.js");
    const { code, stdout, stderr } = await Program.node(module, [], repositoryRoot).ended;
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.trimEnd().split("\n")).toEqual(lines);
  });
});
