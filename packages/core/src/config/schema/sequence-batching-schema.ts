import type { ModelSequenceBatching, SequenceControl, SequenceStateTensor } from "@tritonjs/protocol";
import { controlKind, dataType } from "./enums.js";
import { messageOf } from "./field-schema.js";

const control = messageOf<SequenceControl>()("ModelSequenceBatching.Control", [
  ["kind", controlKind],
  ["int32_false_true", "int32", "repeated"],
  ["fp32_false_true", "float", "repeated"],
  ["bool_false_true", "bool", "repeated"],
  ["data_type", dataType],
]);
const stateData = { oneof: "state_data" } as const;
const initialState = messageOf<SequenceStateTensor["initialState"][number]>()(
  "ModelSequenceBatching.InitialState",
  [
    ["data_type", dataType],
    ["dims", "int64", "repeated"],
    ["zero_data", "bool", stateData],
    ["data_file", "string", stateData],
    ["name", "string"],
  ],
);
const state = messageOf<SequenceStateTensor>()("ModelSequenceBatching.State", [
  ["input_name", "string"],
  ["output_name", "string"],
  ["data_type", dataType],
  ["dims", "int64", "repeated"],
  ["initial_state", initialState, "repeated"],
  ["use_same_buffer_for_input_output", "bool"],
  ["use_growable_memory", "bool"],
]);
const strategyChoice = { oneof: "strategy_choice" } as const;
/** `ModelSequenceBatching`. */
export const sequenceBatchingSchema = messageOf<ModelSequenceBatching>()("ModelSequenceBatching", [
  [
    "direct",
    messageOf<NonNullable<ModelSequenceBatching["direct"]>>()("ModelSequenceBatching.StrategyDirect", [
      ["max_queue_delay_microseconds", "uint64"],
      ["minimum_slot_utilization", "float"],
    ]),
    strategyChoice,
  ],
  [
    "oldest",
    messageOf<NonNullable<ModelSequenceBatching["oldest"]>>()("ModelSequenceBatching.StrategyOldest", [
      ["max_candidate_sequences", "int32"],
      ["preferred_batch_size", "int32", "repeated"],
      ["max_queue_delay_microseconds", "uint64"],
      ["preserve_ordering", "bool"],
    ]),
    strategyChoice,
  ],
  ["max_sequence_idle_microseconds", "uint64"],
  [
    "control_input",
    messageOf<ModelSequenceBatching["controlInput"][number]>()("ModelSequenceBatching.ControlInput", [
      ["name", "string"],
      ["control", control, "repeated"],
    ]),
    "repeated",
  ],
  ["state", state, "repeated"],
  ["iterative_sequence", "bool"],
]);
