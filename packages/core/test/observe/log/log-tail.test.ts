import { expect, it } from "vitest";
import { Log } from "../../../src/observe/log.js";

it("keeps the last 200 messages that were written", () => {
  const none = () => {};
  const log = new Log({ error: none, warn: none, info: none, debug: none });
  log.verbose(1, "not written");
  for (let i = 1; i <= 250; i++) log.info(`message ${i}`);
  log.error("y".repeat(5000));
  const tail = log.tail();
  expect(tail).toHaveLength(200);
  expect(tail[0]).toMatchObject({ number: 52, level: "info", message: "message 52" });
  expect(tail.at(-1)).toMatchObject({ number: 251, level: "error" });
  expect(tail.at(-1)?.message).toHaveLength(1000);
  expect(log.tail(250)).toHaveLength(1);
  expect(log.tail(251)).toEqual([]);
});
