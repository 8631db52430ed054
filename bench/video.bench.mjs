/*
 * How many frames of a video does a detector take, and how late is the answer to a frame? The frames of one, two and four
 * videos go through the program of examples/tutorials/video: first from Y4M files, whose frames cost one read, then
 * decoded by ffmpeg, one process for each video. The detector takes little time, so this is the way of a frame.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { drawVideo } from "../examples/tutorials/video/make-video.mjs";
import { bindTracker, trackVideo } from "../examples/tutorials/video/tracker.mjs";
import { report } from "./support/report.mjs";

const FORM = { width: 320, height: 240, frames: 500 };

const folder = mkdtempSync(join(tmpdir(), "video-"));
const [raw, compressed] = [join(folder, "video.y4m"), join(folder, "video.mp4")];
try {
  await drawVideo(raw, FORM);
  const rows = await rowsOf("Y4M", raw);
  if (encode()) Object.assign(rows, await rowsOf("MPEG-4 by ffmpeg", compressed));
  else console.log("ffmpeg is not installed: no rows of compressed videos");
  report("video", {
    rows,
    note: `${FORM.width}x${FORM.height} pixels, ${FORM.frames} frames a video, at most 4 frames of a video in flight. Latency from the read of a frame to its answer.`,
    document: "media.md",
  });
} finally {
  rmSync(folder, { recursive: true });
}

async function rowsOf(name, video) {
  const rows = {};
  for (const streams of [1, 2, 4]) {
    const triton = new Triton();
    const tracker = await bindTracker(triton);
    await trackVideo(tracker, video);
    const cpuBefore = process.cpuUsage();
    const started = performance.now();
    const reports = await Promise.all(Array.from({ length: streams }, () => trackVideo(tracker, video)));
    const seconds = (performance.now() - started) / 1000;
    const { user, system } = process.cpuUsage(cpuBefore);
    const frames = reports.reduce((sum, one) => sum + one.frames, 0);
    const middle = (key) => reports.map((one) => one[key]).sort((a, b) => a - b)[Math.floor(streams / 2)];
    rows[`${name}, ${streams} at a time`] = {
      "frames a second": frames / seconds,
      "latency ms": middle("p50"),
      "95 % below ms": middle("p95"),
      "CPU ms a frame": (user + system) / 1000 / frames,
    };
    await triton.close();
  }
  return rows;
}

function encode() {
  try {
    execFileSync("ffmpeg", ["-v", "error", "-i", raw, "-c:v", "mpeg4", "-q:v", "3", compressed]);
    return true;
  } catch (error) {
    if (error.code === "ENOENT") return false;
    throw error;
  }
}
