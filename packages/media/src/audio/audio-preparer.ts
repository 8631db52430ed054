import { Tensor, type TensorSpec } from "@tritonjs/protocol";
import { melFilters } from "../signal/mel-filters.js";
import { MelSpectrogram } from "../signal/mel-spectrogram.js";
import type { AudioPlan } from "./audio-plan.js";
import { scaleMels } from "./scale-mels.js";
import { WaveformReader } from "./waveforms.js";

/** Name of the output with the samples or frames of each file. */
export const LENGTHS = "lengths";

/** Makes the tensors of requests from their files. */
export class AudioPreparer {
  readonly #reader: WaveformReader;
  readonly #spectrogram: MelSpectrogram | undefined;

  constructor(private readonly plan: AudioPlan) {
    this.#reader = new WaveformReader(plan);
    if (plan.features === "mel") this.#spectrogram = spectrogramOf(plan);
  }

  /**
   * Prepares the files of a request.
   *
   * @param hasRows true if tensors have an axis of rows
   * @throws TritonError INVALID_ARG for a bad file
   */
  prepare(files: readonly Uint8Array[], hasRows: boolean): Map<string, Tensor> {
    const { outputName, lengths } = this.plan;
    const waveforms = this.#reader.read(files);
    const { shape, values } = this.#featuresOf(waveforms.files);
    const batch = hasRows ? [files.length] : [];
    const outputs = new Map([[outputName, Tensor.fromElements("FP32", [...batch, ...shape], values)]]);
    if (lengths) {
      const counts = Int32Array.from(waveforms.lengths, (samples) => this.#unitsOf(samples));
      outputs.set(LENGTHS, Tensor.fromElements("INT32", [...batch, 1], counts));
    }
    return outputs;
  }

  #featuresOf(files: readonly (readonly Float32Array[])[]): { shape: number[]; values: Float32Array } {
    const { mono, features, mels } = this.plan;
    const samples = files[0]![0]!.length;
    if (features === "waveform") {
      const all = files.flat();
      return {
        shape: mono ? [samples] : [files[0]!.length, samples],
        values: joined(all, samples),
      };
    }
    const count = this.#framesOf(samples);
    if (features === "frames") {
      const { frameLength } = this.plan;
      const frames = files.map(([channel]) => this.#cut(channel!, count));
      return { shape: [count, frameLength], values: joined(frames, count * frameLength) };
    }
    const spectra = files.map(([channel]) => this.#melsOf(channel!, count));
    return { shape: [mels, count], values: joined(spectra, mels * count) };
  }

  /** Samples or frames of a file. */
  #unitsOf(samples: number): number {
    return this.plan.features === "waveform" ? samples : this.#framesOf(samples);
  }

  /**
   * Number of frames of a signal: at least one. Frames reach over the end of the signal, so that none of it is lost.
   */
  #framesOf(samples: number): number {
    const { features, frameLength, hopLength, log } = this.plan;
    if (features === "frames") return 1 + Math.ceil(Math.max(0, samples - frameLength) / hopLength);
    return Math.max(1, this.#spectrogram!.framesOf(samples) - (log === "whisper" ? 1 : 0));
  }

  #cut(signal: Float32Array, count: number): Float32Array {
    const { frameLength, hopLength } = this.plan;
    const target = new Float32Array(count * frameLength);
    for (let frame = 0; frame < count; frame++) {
      target.set(signal.subarray(frame * hopLength, frame * hopLength + frameLength), frame * frameLength);
    }
    return target;
  }

  #melsOf(signal: Float32Array, count: number): Float32Array {
    const target = new Float64Array(this.plan.mels * count);
    this.#spectrogram!.compute(signal, count, target);
    return scaleMels(target, this.plan.log, this.plan.floor);
  }
}

/** The tensors of a plan, without the axis of the rows. */
export function audioTensors({ inputName, outputName, features, mono, samples = -1, ...plan }: AudioPlan): {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
} {
  const frames = {
    waveform: mono ? [samples] : [-1, samples],
    frames: [-1, plan.frameLength],
    mel: [plan.mels, -1],
  };
  const outputs: TensorSpec[] = [{ name: outputName, dtype: "FP32", shape: frames[features] }];
  if (plan.lengths) outputs.push({ name: LENGTHS, dtype: "INT32", shape: [1] });
  return { inputs: [{ name: inputName, dtype: "BYTES", shape: [1] }], outputs };
}

function spectrogramOf(plan: AudioPlan): MelSpectrogram {
  const { sampleRate, nFft, mels, fMin, fMax, melScale, melNorm } = plan;
  const filters = melFilters(sampleRate, nFft, mels, fMin, fMax, melScale, melNorm === "slaney");
  return new MelSpectrogram({ ...plan, filters });
}

function joined(parts: readonly Float32Array[], length: number): Float32Array {
  if (parts.length === 1) return parts[0]!;
  const target = new Float32Array(parts.length * length);
  for (const [i, part] of parts.entries()) target.set(part, i * length);
  return target;
}
