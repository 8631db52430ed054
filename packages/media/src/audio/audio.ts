import { type Backend, workerExecutor } from "@tritonjs/core/backend";
import type { TensorSpec } from "@tritonjs/protocol";
import { hasRows } from "../parameters/bytes-input.js";
import { completeTensors } from "../parameters/complete-tensors.js";
import type { AudioData } from "./audio-model.js";
import type { AudioOptions } from "./audio-options.js";
import { type AudioPlan, planAudio } from "./audio-plan.js";
import { audioTensors } from "./audio-preparer.js";
import { InlineAudioExecutor } from "./inline-audio-executor.js";

/**
 * A backend that prepares audio for a model: it decodes WAV files, mixes the channels, resamples, and makes frames or a
 * mel spectrogram. `bind` needs no specifications: the input is `audio` (BYTES `[rows, 1]`, the bytes of a file), the
 * output has the name of the features (FP32, `[rows, samples]`, `[rows, frames, frameLength]` or
 * `[rows, mels, frames]`).
 *
 * Each instance is a worker thread: a second of audio takes milliseconds, and passing it to a thread a tenth of one.
 * `isolation: "inline"` in the instance group computes on the caller's thread. A bad file fails its own request with
 * INVALID_ARG.
 *
 * @throws TritonError INVALID_ARG for invalid options
 * @example
 * ```ts
 * triton.bind({ modelName: "mel", inferFunc: audio({ preset: "whisper" }) });
 * ```
 */
export function audio(options: AudioOptions = {}): Backend {
  return audioBackend(planAudio(options));
}

/** The backend of a plan. */
export function audioBackend(plan: AudioPlan, isolation: "worker" | "inline" = "worker"): Backend {
  const { inputs, outputs } = audioTensors(plan);
  const withRows = (spec: TensorSpec): TensorSpec => ({ ...spec, shape: [-1, ...spec.shape] });
  return {
    backendName: "audio",
    platform: "",
    isolations: ["worker", "inline"],
    describe: () => ({ inputs: inputs.map(withRows), outputs: outputs.map(withRows) }),
    completeConfig: (config) => completeTensors(config, inputs, outputs),
    createExecutor: (context) => {
      const data: AudioData = { plan, hasRows: hasRows(context.info.modelConfig, plan.inputName) };
      if ((context.hosting.isolation ?? isolation) === "inline") return new InlineAudioExecutor(data);
      const entry = new URL("./audio-model.js", import.meta.url);
      return workerExecutor({ entry, data, interruptible: true, reusesThread: true }, context);
    },
  };
}
