import { type bindTracker, trackVideo } from "../../examples/tutorials/video/tracker.mjs";

/** Tracks a video. @returns its report, and the box and the number of each tracked frame */
export async function track(tracker: Awaited<ReturnType<typeof bindTracker>>, source: string, options = {}) {
  const tracked: { index: number; box: number[]; frames: number }[] = [];
  const report = await trackVideo(tracker, source, {
    ...options,
    onFrame: (index, { box, frames }) =>
      tracked.push({ index, box: Array.from(box!.data), frames: frames!.data[0]! }),
  });
  return { report, tracked };
}
