import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { loadOpenAiData } from "../../../src/data/load-data-set.js";

const folder = mkdtempSync(join(tmpdir(), "tritonjs-openai-data-"));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function load(data: unknown) {
  const path = join(folder, `${files++}.json`);
  writeFileSync(path, JSON.stringify({ data }));
  return loadOpenAiData([path], { sessions: true });
}

const turn = (session_id: unknown, more = {}) => ({ payload: [{ messages: [] }], session_id, ...more });

it("groups the turns of sessions, in the order of their first turns", async () => {
  const { sessions } = await load([
    turn(["b"], { delay: [20] }),
    turn(["a"]),
    turn(["b"], { delay: [1.5] }),
    turn("a"),
  ]);
  expect(sessions).toEqual([
    {
      id: "b",
      turns: [
        { payload: 0, delayMs: 20 },
        { payload: 2, delayMs: 1.5 },
      ],
    },
    {
      id: "a",
      turns: [
        { payload: 1, delayMs: 0 },
        { payload: 3, delayMs: 0 },
      ],
    },
  ]);
});

it.each([
  [turn(undefined), 'data[0]: "session_id": expected the name of a session in a list, got undefined'],
  [turn([7]), 'data[0]: "session_id": expected the name of a session in a list, got [7]'],
  [turn(["a"], { delay: [-1] }), 'data[0]: "delay": expected milliseconds in a list, got [-1]'],
])("refuses an entry with what was expected: %j", async (entry, text) => {
  await expect(load([entry])).rejects.toThrow(text);
});
