import { isDeepStrictEqual } from "node:util";
import { toConfigJson } from "@tritonjs/protocol/config";
import { configFromJson, fieldNotes, fieldProblems } from "@tritonjs/repository/config";
import { expectThat, type FuzzTarget, refusalOf } from "../engine/target.js";
import { text } from "../structures/text.js";

const IO = { name: "x", data_type: "TYPE_FP32", dims: [3, "-1"] };

/** The JSON form of configurations, as load requests have it. Writing and reading it again changes nothing. */
export function open(): FuzzTarget {
  const seeds = [
    { name: "m", backend: "identity", maxBatchSize: "8", input: [IO], output: [{ ...IO, name: "y" }] },
    {
      platform: "ensemble",
      ensemble_scheduling: { step: [{ model_name: "a", model_version: "-1", input_map: { x: "y" } }] },
      parameters: { a: { string_value: "b" } },
      version_policy: { latest: { num_versions: 2 } },
    },
    {
      sequence_batching: {
        direct: {},
        control_input: [{ name: "S", control: [{ kind: 0, int32_false_true: [0, 1] }] }],
      },
      instance_group: [
        { kind: "KIND_GPU", gpus: [0, 1], rate_limiter: { resources: [{ name: "r", count: 1 }] } },
      ],
      optimization: { priority: "PRIORITY_MAX", input_pinned_memory: { enable: false } },
    },
    {
      dynamic_batching: {
        priority_queue_policy: { 1: { timeout_action: "DELAY" } },
        preferred_batch_size: [1],
      },
      model_warmup: [{ name: "w", inputs: { x: { data_type: 11, dims: [1], zero_data: true } } }],
    },
  ].map((config) => Buffer.from(JSON.stringify(config)));
  return {
    seeds,
    structure: text,
    tokens: [
      ...[
        "name",
        "input",
        "dims",
        "__proto__",
        "constructor",
        "toString",
        "null",
        "true",
        "{}",
        "[]",
        "-1",
        "1e5",
      ],
      ...[
        "NaN",
        "Infinity",
        "9223372036854775808",
        "TYPE_FP32",
        "'",
        "\\u0000",
        "\\ud800",
        "string_value",
        "key",
      ],
    ],
    run(input) {
      try {
        const config = configFromJson(Buffer.from(input).toString("utf8"));
        fieldNotes(config);
        fieldProblems(config);
        const again = configFromJson(JSON.stringify(toConfigJson(config)));
        expectThat(
          isDeepStrictEqual(again, config),
          () => `another configuration: ${JSON.stringify(toConfigJson(config))}`,
        );
        return "read";
      } catch (error) {
        return refusalOf(error);
      }
    },
  };
}
