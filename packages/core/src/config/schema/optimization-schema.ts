import type { ModelOptimizationCuda, ModelOptimizationPolicy } from "@tritonjs/protocol";
import { modelPriority } from "./enums.js";
import { message, messageOf } from "./field-schema.js";

const graphShape = message("ModelOptimizationPolicy.Cuda.GraphSpec.Shape", [["dim", "int64", "repeated"]]);
const graphSpec = messageOf<ModelOptimizationCuda["graphSpec"][number]>()(
  "ModelOptimizationPolicy.Cuda.GraphSpec",
  [
    ["batch_size", "int32"],
    ["input", graphShape, "map<string>"],
    [
      "graph_lower_bound",
      message("ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound", [
        ["batch_size", "int32"],
        ["input", graphShape, "map<string>"],
      ]),
    ],
  ],
);
const accelerator = message("ModelOptimizationPolicy.ExecutionAccelerators.Accelerator", [
  ["name", "string"],
  ["parameters", "string", "map<string>"],
]);
const pinnedMemory = message("ModelOptimizationPolicy.PinnedMemoryBuffer", [["enable", "bool"]]);
/** `ModelOptimizationPolicy`: hints to backends. */
export const optimization = messageOf<ModelOptimizationPolicy>()("ModelOptimizationPolicy", [
  ["graph", message("ModelOptimizationPolicy.Graph", [["level", "int32"]])],
  ["priority", modelPriority],
  [
    "cuda",
    messageOf<ModelOptimizationCuda>()("ModelOptimizationPolicy.Cuda", [
      ["graphs", "bool"],
      ["busy_wait_events", "bool"],
      ["graph_spec", graphSpec, "repeated"],
      ["output_copy_stream", "bool"],
    ]),
  ],
  [
    "execution_accelerators",
    messageOf<NonNullable<ModelOptimizationPolicy["executionAccelerators"]>>()(
      "ModelOptimizationPolicy.ExecutionAccelerators",
      [
        ["gpu_execution_accelerator", accelerator, "repeated"],
        ["cpu_execution_accelerator", accelerator, "repeated"],
      ],
    ),
  ],
  ["input_pinned_memory", pinnedMemory],
  ["output_pinned_memory", pinnedMemory],
  ["gather_kernel_buffer_threshold", "uint32"],
  ["eager_batching", "bool"],
]);
