import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { Triton } from "@tritonjs/core";
import { drawVideo } from "./make-video.mjs";
import { bindTracker, trackVideo } from "./tracker.mjs";

/* Tracks videos, all of them at the same time. Without any, it draws three. */

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { "in-flight": { type: "string", default: "4" }, drop: { type: "boolean", default: false } },
});

const folder = await mkdtemp(join(tmpdir(), "videos-"));
const triton = new Triton();
try {
  const videos = positionals.length > 0 ? positionals : await drawVideos();
  const tracker = await bindTracker(triton);
  const options = { inFlight: Number(values["in-flight"]), drops: values.drop };
  const streams = videos.map((video) => {
    let last;
    const onFrame = (index, { box }) => {
      last = `frame ${index}: object at ${Array.from(box.data).join(" ")}`;
    };
    return trackVideo(tracker, video, { ...options, onFrame }).then((report) => ({ ...report, last }));
  });
  for (const { source, frames, dropped, perSecond, p50, p95, last } of await Promise.all(streams)) {
    const figures = `${perSecond.toFixed(0)} a second, latency ${p50.toFixed(1)} ms, 95 % below ${p95.toFixed(1)} ms`;
    console.log(`${basename(source)}: ${frames} frames, ${dropped} dropped, ${figures}`);
    console.log(`  ${last}`);
  }
} finally {
  await triton.close();
  await rm(folder, { recursive: true });
}

async function drawVideos() {
  const paths = [1, 2, 3].map((step) => join(folder, `step-${step}.y4m`));
  await Promise.all(paths.map((path, index) => drawVideo(path, { step: index + 1 })));
  return paths;
}
