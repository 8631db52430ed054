import { expect, test } from "vitest";
import { limitMalloc } from "../../src/serve/process-memory.js";

test.each([
  ["all limits of malloc in the environment", { MALLOC_TRIM_THRESHOLD_: "131072", MALLOC_ARENA_MAX: "2" }],
  ["tunables of malloc in the environment", { GLIBC_TUNABLES: "glibc.malloc.mmap_threshold=131072" }],
])("leaves %s as it is", (_, environment) => {
  expect(limitMalloc(environment)).toBe(false);
});
