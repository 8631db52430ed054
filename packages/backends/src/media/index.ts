import {
  type Backend,
  type BackendFactory,
  type Executor,
  type InputCheck,
  workerExecutor,
} from "@tritonjs/core/backend";
import { DeclaredParameters, inlineRequests, ParameterReader, wrongParameter } from "@tritonjs/core/internal";
import { assertOptions, definedMembers, elementCount, type TensorSpec } from "@tritonjs/protocol";
import { AUDIO_OPTION_TYPES, type AudioOptions, type AudioPlan, planAudio } from "./audio-options.js";
import { type AudioData, AudioPreparer, assertNotTooLong, audioTensors } from "./audio-preparer.js";
import { imageRepositoryBackend } from "./image-backend.js";
import { completeTensors, hasRows } from "./media-parameters.js";
import { ctcRepositoryBackend } from "./speech-backend.js";

/*
 * `@tritonjs/backends/media`: backends that prepare images and audio for models, and read the text of speech models.
 */

export type { AudioOptions } from "./audio-options.js";
export { image, openImagePreparer } from "./image-backend.js";
export type { ImageOptions } from "./image-options.js";
export { type CtcDecoderOptions, ctcDecoder } from "./speech-backend.js";

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
  assertOptions("audio()", options, AUDIO_OPTION_TYPES);
  return audioBackend(planAudio(options));
}

function audioBackend(plan: AudioPlan, isolation: "worker" | "inline" = "worker"): Backend {
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
      const checkInput = checkOfSamples(plan);
      if ((context.hosting.isolation ?? isolation) === "inline")
        return { ...inlineAudio(data), ...checkInput };
      const entry = new URL("./audio-preparer.js", import.meta.url);
      return workerExecutor({ entry, data, interruptible: true, reusesThread: true, ...checkInput }, context);
    },
  };
}

const PARAMETERS = new DeclaredParameters({
  value: [
    "preset",
    "features",
    "sample_rate",
    "mono",
    "seconds",
    "frame_length",
    "hop_length",
    "n_fft",
    "window_length",
    "center",
    "power",
    "mels",
    "f_min",
    "f_max",
    "mel_scale",
    "mel_norm",
    "log",
    "floor",
    "lengths",
    "input",
    "stream",
    "frame_multiple",
    "pad_frames",
    "flush_frames",
    "max_bytes",
    "max_seconds",
    "isolation",
  ],
});

/**
 * The backend `audio` for models of a repository. Its options are parameters with the same names in snake case. The
 * parameter `isolation` is `worker` or `inline`. Written tensors give their names: those of INT32 are the lengths, and
 * an input of FP32 has samples.
 *
 * @throws TritonError INVALID_ARG for unknown parameters and invalid values
 */
const audioRepositoryBackend = PARAMETERS.declaredBy((source) => {
  const { name, config } = source;
  const read = new ParameterReader(source, PARAMETERS);
  const isCount = ({ dataType }: { readonly dataType: string }) => dataType === "TYPE_INT32";
  const output = config.output.find((one) => !isCount(one));
  const lengths = config.output.find(isCount);
  const input = config.input.find((one) => !isCount(one));
  const isFile = input === undefined || input.dataType === "TYPE_STRING";
  const options = definedMembers({
    preset: read.text("preset") as AudioOptions["preset"],
    features: read.text("features") as AudioOptions["features"],
    sampleRate: read.quotient("sampleRate"),
    mono: read.flag("mono"),
    seconds: read.quotient("seconds"),
    frameLength: read.quotient("frameLength"),
    hopLength: read.quotient("hopLength"),
    nFft: read.quotient("nFft"),
    windowLength: read.quotient("windowLength"),
    center: read.flag("center"),
    power: read.quotient("power") as AudioOptions["power"],
    mels: read.quotient("mels"),
    fMin: read.quotient("fMin"),
    fMax: read.quotient("fMax"),
    melScale: read.text("melScale") as AudioOptions["melScale"],
    melNorm: read.text("melNorm") as AudioOptions["melNorm"],
    log: read.text("log") as AudioOptions["log"],
    floor: read.quotient("floor"),
    lengths: read.flag("lengths") ?? (lengths === undefined ? undefined : true),
    lengthsName: lengths?.name,
    input: (read.text("input") as AudioOptions["input"]) ?? (isFile ? undefined : "samples"),
    inputLengthsName: config.input.find(isCount)?.name,
    stream: read.flag("stream"),
    frameMultiple: read.quotient("frameMultiple"),
    padFrames: read.quotient("padFrames"),
    flushFrames: read.quotient("flushFrames"),
    maxBytes: read.quotient("maxBytes"),
    maxSeconds: read.quotient("maxSeconds"),
    inputName: input?.name,
    outputName: output?.name,
  });
  const isolation = read.text("isolation");
  read.assertNoOthers();
  if (isolation === undefined || isolation === "worker" || isolation === "inline") {
    return audioBackend(planAudio(options as AudioOptions), isolation);
  }
  throw wrongParameter(name, "isolation", "worker or inline", isolation);
});

/** The check of samples by their number, so that calls in process do not copy hours of them. */
function checkOfSamples(plan: AudioPlan): { checkInput?: InputCheck } {
  if (plan.input !== "samples" || plan.samples !== undefined) return {};
  return {
    checkInput: (name, shape) => {
      if (name === plan.inputName) assertNotTooLong(plan, elementCount(shape));
    },
  };
}

/** Prepares audio on this thread, one request after another, with a turn of the event loop between them. */
function inlineAudio({ plan, hasRows }: AudioData): Executor {
  const preparer = new AudioPreparer(plan);
  return inlineRequests(({ inputs, sequenceEnd }) => preparer.prepare(inputs, hasRows, sequenceEnd));
}

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = {
  image: imageRepositoryBackend,
  audio: audioRepositoryBackend,
  ctc_decoder: ctcRepositoryBackend,
};
