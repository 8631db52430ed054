import type { Backend, ModelHandle, Triton } from "@tritonjs/core";

type Answer = Readonly<Record<string, { readonly data: ArrayLike<number> }>>;

type Detect = (
  requests: readonly { readonly inputs: { readonly frame: { readonly data: Uint8Array } } }[],
) => unknown;

export interface VideoOptions {
  readonly inFlight?: number;
  readonly drops?: boolean;
  readonly ffmpeg?: string;
  readonly onDrop?: (index: number) => void;
  readonly onFrame?: (index: number, answer: Answer) => void;
}

/** What became of the frames of a video. Latencies are milliseconds. */
export interface VideoReport {
  readonly source: string;
  readonly frames: number;
  readonly dropped: number;
  readonly mostInFlight: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p95: number;
  readonly worst: number;
}

export function bindTracker(triton: Triton, detect?: Backend | Detect): Promise<ModelHandle>;
export function trackVideo(
  tracker: ModelHandle,
  source: string,
  options?: VideoOptions,
): Promise<VideoReport>;
