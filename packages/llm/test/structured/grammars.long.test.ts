import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { type GrammarAnswer, GrammarJobs, type GrammarRequest } from "../../src/structured/grammar-jobs.js";
import { TokenBytes } from "../../src/structured/token-masks.js";
import { HOSTILE_FORMATS } from "./hostile-formats.js";

/** Constrains texts to 2,000 formats, of which some are hostile, and prints how they ended. */
const PROGRAM = `
import { StructuredOutput } from "@tritonjs/llm";
const tokens = ["", ...Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i))];
const structured = new StructuredOutput({ tokens, spelling: "raw" }, [0]);
const ends = { read: 0, refused: 0 };
const optional = (i, count) => Object.fromEntries(Array.from({ length: count }, (_, j) => ["p" + i + "_" + j, {}]));
for (let i = 0; i < 2000; i++) {
  const schema = { type: "object", properties: optional(i, i % 100 === 99 ? 5000 : 1 + (i % 60)) };
  try {
    const constraint = await structured.constrain({ type: "json_schema", schema });
    await constraint.allowed();
    // Every tenth text never ends.
    if (i % 10 > 0) constraint.release();
    ends.read++;
  } catch (error) {
    if (error.code !== "INVALID_ARG") throw error;
    ends.refused++;
  }
}
await structured.close();
console.log(JSON.stringify({ ...ends, megabytes: process.resourceUsage().maxRSS / 1024 }));
`;

it("keeps 2,000 distinct schemas within a heap of 200 MB", () => {
  const options = ["--max-old-space-size=200", "--input-type=module", "--eval", PROGRAM];
  const { stdout, stderr, status } = spawnSync(process.execPath, options, {
    encoding: "utf8",
    cwd: import.meta.dirname,
  });
  expect(stderr).toBe("");
  expect(status).toBe(0);
  const { read, refused, megabytes } = JSON.parse(stdout);
  expect({ read, refused }).toEqual({ read: 1980, refused: 20 });
  expect(megabytes).toBeLessThan(500);
});

it.each(Object.entries(HOSTILE_FORMATS))("a format ends within its steps: %s", (_, format) => {
  const texts = ["<end>", ...Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i))];
  const requests: GrammarRequest[] = [{ type: "begin", text: 1, format: JSON.stringify(format) }];
  const answers: GrammarAnswer[] = [];
  let looks = 0;
  const jobs = new GrammarJobs(new TokenBytes(texts, "raw", texts.length), [0], false, 2 ** 26, {
    next: () => {
      looks++;
      return requests.shift();
    },
    answer: (answer) => answers.push(answer),
  });
  jobs.run();
  expect(answers).toHaveLength(1);
  // Three tries, with a look at other work every 2,000 steps.
  expect(looks).toBeLessThan((8_000 + 60_000 + 600_000) / 2_000 + 9);
  expect(jobs.bytes).toBeLessThan(2 ** 25);
});
