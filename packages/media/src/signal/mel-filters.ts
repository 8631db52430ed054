/** Definition of the mel scale: Slaney's, linear below 1 kHz, or HTK's, logarithmic everywhere. */
export type MelScale = "slaney" | "htk";

/** One triangular filter: its weights of the bins from `first` on. */
export interface MelFilter {
  readonly first: number;
  readonly weights: Float64Array;
}

/**
 * Triangular filters whose corners are evenly spaced on the mel scale, as `librosa.filters.mel` defines them.
 *
 * @param isAreaOne true to divide each filter by half its width in Hz (`norm="slaney"`), false for peaks of 1
 */
export function melFilters(
  sampleRate: number,
  nFft: number,
  mels: number,
  fMin: number,
  fMax: number,
  scale: MelScale,
  isAreaOne: boolean,
): readonly MelFilter[] {
  const [low, high] = [toMel(fMin, scale), toMel(fMax, scale)];
  const corners = Float64Array.from({ length: mels + 2 }, (_, i) =>
    toHertz(low + ((high - low) * i) / (mels + 1), scale),
  );
  const bins = nFft / 2 + 1;
  return Array.from({ length: mels }, (_, mel) => {
    const [from, peak, to] = [corners[mel]!, corners[mel + 1]!, corners[mel + 2]!];
    const size = isAreaOne ? 2 / (to - from) : 1;
    const all = Array.from({ length: Math.floor(bins) }, (_, bin) => {
      const frequency = (bin * sampleRate) / nFft;
      return size * Math.max(0, Math.min((frequency - from) / (peak - from), (to - frequency) / (to - peak)));
    });
    const first = all.findIndex((weight) => weight > 0);
    const last = all.findLastIndex((weight) => weight > 0);
    return first < 0
      ? { first: 0, weights: new Float64Array() }
      : { first, weights: Float64Array.from(all.slice(first, last + 1)) };
  });
}

/** Slaney's scale: 15 mels in 1 kHz, then 27 in each factor of 6.4. */
const LINEAR_HERTZ = 200 / 3;
const CORNER_HERTZ = 1000;
const CORNER_MEL = CORNER_HERTZ / LINEAR_HERTZ;
const LOG_STEP = Math.log(6.4) / 27;

function toMel(hertz: number, scale: MelScale): number {
  if (scale === "htk") return 2595 * Math.log10(1 + hertz / 700);
  return hertz < CORNER_HERTZ ? hertz / LINEAR_HERTZ : CORNER_MEL + Math.log(hertz / CORNER_HERTZ) / LOG_STEP;
}

function toHertz(mel: number, scale: MelScale): number {
  if (scale === "htk") return 700 * (10 ** (mel / 2595) - 1);
  return mel < CORNER_MEL ? mel * LINEAR_HERTZ : CORNER_HERTZ * Math.exp(LOG_STEP * (mel - CORNER_MEL));
}
