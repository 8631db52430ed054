/** A GPU as the driver tells of it. */
export interface DriverGpu {
  readonly number: number;
  /** `GPU-` and a UUID; empty where it is not known. */
  readonly uuid: string;
}

/**
 * Numbers of the GPUs that CUDA shows a program: it counts those that `CUDA_VISIBLE_DEVICES` chooses anew, from 0, up to
 * the first entry that is none.
 *
 * @param chosen numbers, or UUIDs and beginnings of them, with commas between
 */
export function visibleGpus(all: readonly DriverGpu[], chosen: string | undefined): readonly number[] {
  if (chosen === undefined) return all.map(({ number }) => number);
  const entries = chosen.split(",").map((entry) => entry.trim());
  const invalid = entries.findIndex((entry) => !all.some((gpu) => isMeant(gpu, entry)));
  const count = invalid < 0 ? entries.length : invalid;
  return Array.from({ length: count }, (_, i) => i);
}

function isMeant({ number, uuid }: DriverGpu, entry: string): boolean {
  if (/^\d+$/.test(entry)) return Number(entry) === number;
  return entry.startsWith("GPU-") && (uuid === "" || uuid.startsWith(entry));
}
