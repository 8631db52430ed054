import { invalidOption } from "../../data/invalid-option.js";
import type { OptionReader } from "../../perf/option-reader.js";
import { readOptionNumber, readWord } from "../../perf/option-readers.js";
import type { ModelSpace } from "../search-space.js";
import { VARIANT_ISOLATIONS } from "../variant-parameters.js";

/** Reads the values that the user gave. An empty list keeps the configured value. */
export function readSpace(options: OptionReader): ModelSpace {
  const list = (name: string, flag: string, min: number, whole = true) =>
    options
      .text(name)
      ?.split(",")
      .map((text) => readOptionNumber(flag, text.trim(), { min, whole }));
  const sizes = list("maxBatchSizes", "--max-batch-sizes", 0);
  const given = {
    instances: list("instances", "--instances", 1),
    isolation: options
      .text("isolation")
      ?.split(",")
      .map((word) => readWord("--isolation", word.trim(), VARIANT_ISOLATIONS)),
    maxBatchSize: sizes?.length === 1 && sizes[0] === 0 ? [] : sizes,
    queueDelayMicroseconds: list("queueDelays", "--queue-delays", 0),
    preferredBatchSizes: options.text("preferredBatchSizes")?.split(",").map(preferredOf),
    targetLatencyMs: list("targetLatencies", "--target-latencies", 0, false),
    threads: list("threads", "--threads", 0),
  };
  if (given.maxBatchSize?.includes(0)) {
    throw invalidOption(
      "--max-batch-sizes: expected sizes of at least 1, or 0 alone to keep the configured one",
    );
  }
  return Object.fromEntries(Object.entries(given).filter(([, values]) => values !== undefined));
}

/** `4+8` are the sizes of one configuration; `0` is none. */
function preferredOf(text: string): number[] {
  return text
    .split("+")
    .map((size) => readOptionNumber("--preferred-batch-sizes", size.trim(), { whole: true }))
    .filter((size) => size > 0);
}
