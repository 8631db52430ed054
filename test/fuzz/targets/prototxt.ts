import { isDeepStrictEqual } from "node:util";
import { readPrototxt, writePrototxt } from "@tritonjs/repository/config";
import { expectThat, type FuzzTarget, refusalOf } from "../engine/target.js";
import { text } from "../structures/text.js";

const SEEDS = [
  `name: "m" platform: "onnxruntime_onnx" max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3, -1 ] reshape { shape: [ 1 ] } } ]
output { name: "y" data_type: TYPE_STRING dims: 1 label_filename: "labels.txt" }
version_policy: { specific { versions: [ 1, 3 ] } }
instance_group [ { count: 2 kind: KIND_CPU } ]`,
  `# comment
backend: 'python'
dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 preserve_ordering: true
  priority_levels: 2 default_priority_level: 1
  priority_queue_policy { key: 1 value: { timeout_action: DELAY default_timeout_microseconds: 5 } } }
parameters { key: "a" value: { string_value: "b\\n\\x41\\101\\u00e9" } }
optimization { execution_accelerators { gpu_execution_accelerator: [ { name: "tensorrt" parameters { key: "p" value: "q" } } ] } }`,
  `platform: "ensemble"
ensemble_scheduling { step [ { model_name: "a" model_version: -1 input_map { key: "x" value: "y" } output_map { key: "z" value: "w" } } ] }
sequence_batching { max_sequence_idle_microseconds: 5000000 oldest { max_candidate_sequences: 4 }
  control_input [ { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ]
  state [ { input_name: "i" output_name: "o" data_type: TYPE_INT32 dims: [ -1 ] initial_state: { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true name: "s" } } ] }
model_warmup [ { name: "w" batch_size: 1 inputs { key: "x" value: { data_type: TYPE_FP32 dims: [ 1 ] random_data: true } } } ]
model_transaction_policy { decoupled: True } response_cache { enable: 1 }`,
];

/** `config.pbtxt`. What was read and written again reads as the same configuration. */
export function open(): FuzzTarget {
  return {
    seeds: SEEDS.map((seed) => Buffer.from(seed)),
    structure: text,
    tokens: [
      ...[
        "{",
        "}",
        "[",
        "]",
        "<",
        ">",
        ":",
        ";",
        ",",
        "#",
        "'",
        '"',
        '"\\',
        '"\\x',
        "\\U0010ffff",
        "\\ud800",
        "-",
      ],
      ...[
        "inf",
        "nan",
        "0x1F",
        "077",
        "1e40",
        "1.5f",
        "TYPE_FP32",
        "KIND_GPU",
        "true",
        "t",
        "[a.b/c.d]",
        "__proto__",
      ],
      ...[
        "name",
        "input",
        "dims",
        "parameters",
        "key",
        "value",
        "string_value",
        "constructor",
        "18446744073709551616",
      ],
    ],
    run(input) {
      const source = Buffer.from(input).toString("utf8");
      try {
        const config = readPrototxt(source);
        const again = readPrototxt(writePrototxt(config));
        expectThat(isDeepStrictEqual(again, config), () => `another configuration: ${writePrototxt(config)}`);
        return "read";
      } catch (error) {
        return refusalOf(error);
      }
    },
  };
}
