import { TritonError } from "@tritonjs/protocol";
import { expect, it } from "vitest";
import { ErrorLog } from "../../src/observe/statistics.js";

it("keeps the last 16 different failures, and counts equal ones", () => {
  const log = new ErrorLog();
  for (let i = 0; i < 20; i++) log.record(new TritonError("INTERNAL", `fault ${i}`), i);
  for (let i = 0; i < 1000; i++) log.record(new TritonError("INTERNAL", "flood"), 100 + i);
  expect(log.recent).toHaveLength(16);
  expect(log.recent[0]).toEqual({ at: 1099, code: "INTERNAL", message: "flood", count: 1000 });
  expect(log.recent[1]?.message).toBe("fault 19");
  log.record(new TritonError("INTERNAL", "x".repeat(10_000)), 0);
  expect(log.recent[0]?.message).toHaveLength(500);
});
