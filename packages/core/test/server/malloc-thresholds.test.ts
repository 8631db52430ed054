import { expect, test } from "vitest";
import { fixMallocThresholds } from "../../src/server/malloc-thresholds.js";

test.each([
  ["a limit of malloc in the environment", { MALLOC_TRIM_THRESHOLD_: "131072" }],
  ["tunables of malloc in the environment", { GLIBC_TUNABLES: "glibc.malloc.mmap_threshold=131072" }],
])("leaves %s as it is", (_, environment) => {
  expect(fixMallocThresholds(environment)).toBe(false);
});
