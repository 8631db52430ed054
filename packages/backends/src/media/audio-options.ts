import { optionTypes } from "@tritonjs/protocol";
import { transformFactors } from "./fourier-transform.js";
import { assertInteger, assertOneOf, mediaOptionError } from "./media-parameters.js";
import type { MelScale } from "./mel-spectrogram.js";

/**
 * Form of the output: the samples, overlapping frames of samples, a mel spectrogram, or log mel filter banks as Kaldi
 * and `torchaudio.compliance.kaldi.fbank` compute them without dither.
 */
type AudioFeatures = "waveform" | "frames" | "mel" | "fbank";

/** Form of the input: the bytes of WAV files, or samples from -1 to 1 at the sample rate. */
type AudioInput = "file" | "samples";

/**
 * Scale of the values of a mel spectrogram: as they are, natural logarithm, logarithm to base 10, decibels, or
 * Whisper's: to base 10, at most 8 below the file's largest, then (x + 4) / 4, without the last frame.
 */
export type AudioLog = "none" | "ln" | "log10" | "db" | "whisper";

/** Options of {@link audio}. */
export interface AudioOptions {
  /**
   * Other defaults: `whisper` is OpenAI's log-mel spectrogram, FP32 [80, 3000] of 30 seconds at 16 kHz (with
   * `mels: 128` as for its large-v3).
   */
  readonly preset?: "whisper";
  /** Form of the output. @default "waveform"; "mel" with the preset */
  readonly features?: AudioFeatures;
  /** Samples in a second of the result, from 1,000 to 192,000. Files with other rates are resampled. @default 16,000 */
  readonly sampleRate?: number;
  /**
   * True for the mean of the channels; false for an axis of channels, only with the features `waveform`. @default true
   */
  readonly mono?: boolean;
  /**
   * Seconds of the result: longer files are cut, shorter ones end with silence.
   *
   * @default as long as the file; 30 with the preset
   */
  readonly seconds?: number;
  /** Samples of a frame, for the features `frames` and `fbank`. @default 400 */
  readonly frameLength?: number;
  /** Samples from the start of a frame to that of the next. @default 160 */
  readonly hopLength?: number;
  /** Samples of a Fourier transform, a product of primes up to 31. @default 400 */
  readonly nFft?: number;
  /** Samples of the periodic Hann window. @default nFft */
  readonly windowLength?: number;
  /** True if frames are centred on their samples, with the signal mirrored at its ends. @default true */
  readonly center?: boolean;
  /** Exponent of the magnitudes: 1, or 2 for powers. @default 2 */
  readonly power?: 1 | 2;
  /** Bands of the mel spectrogram. @default 80 */
  readonly mels?: number;
  /** Lowest frequency of the bands in Hz. @default 0; 20 for `fbank` */
  readonly fMin?: number;
  /** Highest frequency of the bands in Hz. @default half the sample rate */
  readonly fMax?: number;
  /** Mel scale. @default "slaney", as librosa and Whisper; "htk" as torchaudio */
  readonly melScale?: MelScale;
  /** `slaney` divides each band by half its width in Hz; `none` leaves its peak at 1. @default "slaney" */
  readonly melNorm?: "slaney" | "none";
  /** Scale of the values. @default "none"; "whisper" with the preset */
  readonly log?: AudioLog;
  /** Smallest value before a logarithm. @default 1e-10 */
  readonly floor?: number;
  /** True for an output `lengths`, INT32 [1]: samples or frames of each file, without padding. @default false */
  readonly lengths?: boolean;
  /** Largest file in bytes. @default 67,108,864 (64 MiB) */
  readonly maxBytes?: number;
  /**
   * Largest sum of the seconds of a request's files. Each counts as long as the longest, because shorter ones are
   * padded. `seconds` replaces this limit.
   *
   * @default 600
   */
  readonly maxSeconds?: number;
  /** Name of the input, BYTES [1]. @default "audio" */
  readonly inputName?: string;
  /** Name of the output. @default the features: "waveform", "frames", "mel" or "fbank" */
  readonly outputName?: string;
  /** Name of the output of `lengths`. @default "lengths" */
  readonly lengthsName?: string;
  /** Form of the input: WAV files (BYTES [1]) or samples (FP32 [-1]). @default "file" */
  readonly input?: AudioInput;
  /**
   * Name of a further input, INT32 [1]: samples of each row without padding. For samples only.
   *
   * @default none: rows of samples have no padding
   */
  readonly inputLengthsName?: string;
  /**
   * True for filter banks of streams: each request of a sequence has the next samples, and gets the frames that are
   * complete with them. The configuration has the state `past` to `present`, FP32 [-1], which holds the other samples.
   *
   * @default false
   */
  readonly stream?: boolean;
  /** For streams: the frames of a request are a multiple of this number; the others come later. @default 1 */
  readonly frameMultiple?: number;
  /** For streams: silence pads the tensor to a multiple of this number of frames, at least one. @default 1 */
  readonly padFrames?: number;
  /** For streams: frames of silence after the end, so that a causal model can tell the last word. @default 0 */
  readonly flushFrames?: number;
}

export const AUDIO_OPTION_TYPES = optionTypes<AudioOptions>({
  preset: "string",
  features: "string",
  sampleRate: "number",
  mono: "boolean",
  seconds: "number",
  frameLength: "number",
  hopLength: "number",
  nFft: "number",
  windowLength: "number",
  center: "boolean",
  power: "number",
  mels: "number",
  fMin: "number",
  fMax: "number",
  melScale: "string",
  melNorm: "string",
  log: "string",
  floor: "number",
  lengths: "boolean",
  maxBytes: "number",
  maxSeconds: "number",
  inputName: "string",
  outputName: "string",
  lengthsName: "string",
  input: "string",
  inputLengthsName: "string",
  stream: "boolean",
  frameMultiple: "number",
  padFrames: "number",
  flushFrames: "number",
});

/** Options with their defaults, all checked. Structured cloning keeps them. */
export type AudioPlan = Required<Omit<AudioOptions, "preset" | "seconds" | "inputLengthsName">> & {
  readonly inputLengthsName: string | undefined;
  /** Samples of the result; undefined if it is as long as the file. */
  readonly samples: number | undefined;
};

/** Defaults of {@link AudioOptions}: those of Whisper's features, which most models of speech share. */
const DEFAULTS = {
  features: "waveform",
  sampleRate: 16_000,
  mono: true,
  frameLength: 400,
  hopLength: 160,
  nFft: 400,
  center: true,
  power: 2,
  mels: 80,
  fMin: 0,
  melScale: "slaney",
  melNorm: "slaney",
  log: "none",
  floor: 1e-10,
  lengths: false,
  maxBytes: 64 * 2 ** 20,
  maxSeconds: 600,
  inputName: "audio",
  lengthsName: "lengths",
  input: "file",
  inputLengthsName: undefined,
  stream: false,
  frameMultiple: 1,
  padFrames: 1,
  flushFrames: 0,
} as const satisfies Partial<AudioPlan>;

const PRESETS = { whisper: { features: "mel", log: "whisper", seconds: 30 } } as const;

const WORDS = {
  features: ["waveform", "frames", "mel", "fbank"],
  input: ["file", "samples"],
  melScale: ["slaney", "htk"],
  melNorm: ["slaney", "none"],
  log: ["none", "ln", "log10", "db", "whisper"],
} as const;

/** Largest value of the options that count samples or bands. */
const INTEGERS = {
  frameLength: 1_000_000,
  hopLength: 1_000_000,
  nFft: 65_536,
  mels: 1024,
  frameMultiple: 1024,
  padFrames: 65_536,
} as const;

const LONGEST_SECONDS = 24 * 3600;

/**
 * Completes and checks options.
 *
 * @throws TritonError INVALID_ARG that names the option
 */
export function planAudio({ preset, ...options }: AudioOptions): AudioPlan {
  if (preset !== undefined) assertOneOf("preset", preset, Object.keys(PRESETS));
  const { seconds, ...chosen } = {
    ...DEFAULTS,
    ...(preset === undefined ? {} : PRESETS[preset]),
    ...(options.features === "fbank" && { fMin: 20 }),
    ...options,
  };
  const { sampleRate, nFft, features } = chosen;
  const plan: AudioPlan = {
    windowLength: nFft,
    fMax: sampleRate / 2,
    outputName: features,
    ...chosen,
    samples: seconds === undefined ? undefined : Math.round(seconds * sampleRate),
  };
  for (const name of Object.keys(WORDS) as (keyof typeof WORDS)[]) assertOneOf(name, plan[name], WORDS[name]);
  assertInteger("sampleRate", sampleRate, 1000, 192_000);
  for (const name of Object.keys(INTEGERS) as (keyof typeof INTEGERS)[]) {
    assertInteger(name, plan[name], 1, INTEGERS[name]);
  }
  assertInteger("windowLength", plan.windowLength, 1, nFft);
  assertInteger("power", plan.power, 1, 2);
  assertInteger("maxBytes", plan.maxBytes, 1, 2 ** 31 - 1);
  if (transformFactors(nFft) === undefined)
    throw mediaOptionError("nFft", "a product of primes up to 31", nFft);
  if (!(plan.fMin >= 0 && plan.fMin < plan.fMax && plan.fMax <= sampleRate / 2)) {
    throw mediaOptionError("fMin and fMax", `0 <= fMin < fMax <= ${sampleRate / 2}`, [plan.fMin, plan.fMax]);
  }
  if (!(plan.floor > 0)) throw mediaOptionError("floor", "a number above 0", plan.floor);
  if (seconds !== undefined && !(seconds * sampleRate >= 1 && seconds <= LONGEST_SECONDS)) {
    throw mediaOptionError("seconds", `a number above 0, up to ${LONGEST_SECONDS}`, seconds);
  }
  if (!(plan.maxSeconds > 0 && plan.maxSeconds <= LONGEST_SECONDS)) {
    throw mediaOptionError("maxSeconds", `a number above 0, up to ${LONGEST_SECONDS}`, plan.maxSeconds);
  }
  assertInteger("flushFrames", plan.flushFrames, 0, 65_536);
  if (features === "fbank" && plan.frameLength < 2) {
    throw mediaOptionError("frameLength", "at least 2 with the features 'fbank'", plan.frameLength);
  }
  if (plan.input === "file" && plan.inputLengthsName !== undefined) {
    throw mediaOptionError("inputLengthsName", "none with the input 'file'", plan.inputLengthsName);
  }
  if (plan.input === "samples" && !plan.mono)
    throw mediaOptionError("mono", "true with the input 'samples'", false);
  if (plan.stream && (features !== "fbank" || plan.input !== "samples" || plan.samples !== undefined)) {
    const expected = "only with the features 'fbank', the input 'samples' and without seconds";
    throw mediaOptionError("stream", expected, true);
  }
  if (!plan.mono && features !== "waveform") {
    throw mediaOptionError("mono", `true with the features '${features}'`, plan.mono);
  }
  return plan;
}
