import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

/** Text that each example prints. */
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
  "rate-limiter": [
    "one licence, and chat has twice the turns of report",
    ...[
      "0 ms: chat",
      "10 ms: report",
      "20 ms: chat",
      "30 ms: chat",
      "40 ms: report",
      "50 ms: chat",
      "60 ms: chat",
      "70 ms: report",
      "80 ms: chat",
      "90 ms: report",
      "100 ms: report",
      "110 ms: report",
    ].map((line) => `  ${line}`),
    "two pieces of memory: two small ones at a time, or a large one",
    ...[
      "0 ms: small",
      "10 ms: large",
      "20 ms: small, small",
      "30 ms: large",
      "40 ms: small",
      "50 ms: large",
      "60 ms: large",
    ].map((line) => `  ${line}`),
    "no more than there is, and nobody waits for what others have",
    "  0 ms: chat, small, small",
    "  10 ms: chat",
    'huge does not load: Resource count for "memory" is limited to 2 which will prevent scheduling of one or more model ' +
      "instances, the minimum required count is 3",
  ],
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

describe("the serving example", () => {
  it.each(Object.entries(examples))("%s runs to its end and shows its feature", async (name, lines) => {
    const module = join(repositoryRoot, "examples", name, "dist", "main.js");
    const { code, stdout, stderr } = await Program.node(module, [], repositoryRoot).ended;
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.trimEnd().split("\n")).toEqual(lines);
  });
});
