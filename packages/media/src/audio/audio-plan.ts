import { assertInteger, assertOneOf, mediaOptionError } from "../parameters/option-checks.js";
import { transformFactors } from "../signal/fourier.js";
import type { AudioOptions } from "./audio-options.js";

/** Options with their defaults, all checked. Structured cloning keeps them. */
export type AudioPlan = Required<Omit<AudioOptions, "preset" | "seconds">> & {
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
} as const satisfies Partial<AudioOptions>;

const PRESETS = { whisper: { features: "mel", log: "whisper", seconds: 30 } } as const;

const WORDS = {
  features: ["waveform", "frames", "mel"],
  melScale: ["slaney", "htk"],
  melNorm: ["slaney", "none"],
  log: ["none", "ln", "log10", "db", "whisper"],
} as const;

/** Largest value of the options that count samples or bands. */
const INTEGERS = { frameLength: 1_000_000, hopLength: 1_000_000, nFft: 65_536, mels: 1024 } as const;

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
  if (!plan.mono && features !== "waveform") {
    throw mediaOptionError("mono", `true with the features '${features}'`, plan.mono);
  }
  return plan;
}
