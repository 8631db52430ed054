import { readFileSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { drawVideo } from "../../examples/tutorials/video/make-video.mjs";
import { bindTracker, trackVideo } from "../../examples/tutorials/video/tracker.mjs";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { track } from "./track.js";

const tutorial = join(repositoryRoot, "examples/tutorials/video");

let folder: string;
let triton: Triton;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "video-"));
  triton = new Triton({ logger: { error() {}, warn() {}, info() {}, debug() {} } });
});
afterEach(async () => {
  await triton.close();
  await rm(folder, { recursive: true });
});

/** A detector that answers when it is told to, and then all that come later. */
function heldDetector() {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const detect = async (requests: readonly unknown[]) => {
    await released;
    return requests.map(() => ({ box: [[1, 2, 3, 4]], score: [[1]] }));
  };
  return { detect, release };
}

/** A program in ffmpeg's place that writes frames as fast as it may, and counts them in a file. */
async function endlessFfmpeg(frames: number) {
  const [path, count] = [join(folder, "ffmpeg"), join(folder, "count")];
  await writeFile(
    path,
    `#!${process.execPath}
    const { writeFileSync, writeSync } = require("node:fs");
    const send = (bytes) => {
      for (let sent = 0; sent < bytes.length; ) {
        try { sent += writeSync(1, bytes, sent); } catch (error) { if (error.code !== "EAGAIN") process.exit(1); }
      }
    };
    send(Buffer.from("YUV4MPEG2 W160 H120 F25:1 Cmono\\n"));
    const frame = Buffer.concat([Buffer.from("FRAME\\n"), Buffer.alloc(160 * 120, 40)]);
    for (let i = 0; i < ${frames}; i++) {
      writeFileSync(${JSON.stringify(count)}, String(i));
      send(frame);
    }`,
  );
  await chmod(path, 0o755);
  return { ffmpeg: path, written: () => Number(readFileSync(count, "utf8") || 0) };
}

describe("frames of a video through a detector", () => {
  it("of several videos at once: each box is right, and each video stays in order", async () => {
    const videos = await Promise.all(
      [1, 2, 3].map(async (step) => {
        const path = join(folder, `${step}.y4m`);
        return { path, boxes: await drawVideo(path, { step, frames: 40 }) };
      }),
    );
    const tracker = await bindTracker(triton);
    const results = await Promise.all(videos.map(({ path }) => track(tracker, path)));
    for (const [i, { report, tracked }] of results.entries()) {
      expect(report).toMatchObject({ frames: 40, dropped: 0, mostInFlight: 4 });
      expect(report.worst).toBeGreaterThanOrEqual(report.p50);
      expect(tracked).toEqual(videos[i]!.boxes.map((box, index) => ({ index, box, frames: index + 1 })));
    }
  });

  it("hold back a video that is faster than the detector", async () => {
    const { ffmpeg, written } = await endlessFfmpeg(600);
    const { detect, release } = heldDetector();
    let answered = 0;
    let furthest = 0;
    const tracker = await bindTracker(triton, async (requests: readonly unknown[]) => {
      const outputs = await detect(requests);
      answered += requests.length;
      furthest = Math.max(furthest, written() - answered);
      return outputs;
    });
    const whole = track(tracker, "camera", { ffmpeg, inFlight: 2 });
    // The frames that fit into the pipe are written ahead.
    await expect
      .poll(() => Number(readFileSync(join(folder, "count"), { encoding: "utf8", flag: "a+" })))
      .toBeGreaterThan(3);
    release();
    const { report } = await whole;
    expect(report).toMatchObject({ frames: 600, dropped: 0, mostInFlight: 2 });
    expect(furthest).toBeLessThan(60);
  });

  it("are left out when a camera does not wait, except for the last one", async () => {
    const path = join(folder, "camera.y4m");
    await drawVideo(path, { frames: 30 });
    const { detect, release } = heldDetector();
    const tracker = await bindTracker(triton, detect);
    // Frame 28 is the last one that may be left out.
    const onDrop = (index: number) => index === 28 && release();
    const { report, tracked } = await track(tracker, path, { inFlight: 2, drops: true, onDrop });
    expect(report).toMatchObject({ frames: 3, dropped: 27, mostInFlight: 2 });
    expect(tracked.map(({ index, frames }) => [index, frames])).toEqual([
      [0, 1],
      [1, 2],
      [29, 3],
    ]);
  });
});

describe("a video that cannot be tracked is an error that says why", () => {
  it.each([
    [
      "no ffmpeg",
      { ffmpeg: "/nowhere/ffmpeg" },
      "street.mp4",
      /cannot decode 'street\.mp4': the program '\/nowhere\/ffmpeg' is not installed \(apt-get install ffmpeg\); a \.y4m file can be read without it/,
    ],
    ["no Y4M", {}, "text.y4m", /'.*text\.y4m': expected a Y4M header with 8-bit frames, got 'hello'/],
    ["a cut frame", {}, "cut.y4m", /'.*cut\.y4m': frame 0: expected 6 bytes, got the end of the video/],
    ["no FRAME", {}, "wrong.y4m", /'.*wrong\.y4m': frame 0: expected FRAME, got 'PICTURE'/],
    ["ten bits", {}, "deep.y4m", /expected a Y4M header with 8-bit frames, got 'YUV4MPEG2 W2 H2 C420p10'/],
    ["no file", {}, "none.y4m", /ENOENT/],
  ])("%s", async (_, options, name, message) => {
    const contents: Readonly<Record<string, string>> = {
      "text.y4m": "hello\n",
      "cut.y4m": "YUV4MPEG2 W2 H2\nFRAME\nabc",
      "wrong.y4m": "YUV4MPEG2 W2 H2\nPICTURE\nabcdef",
      "deep.y4m": "YUV4MPEG2 W2 H2 C420p10\nFRAME\n",
    };
    if (contents[name] !== undefined) await writeFile(join(folder, name), contents[name]);
    const tracker = await bindTracker(triton, heldDetector().detect);
    const source = name.endsWith(".mp4") ? name : join(folder, name);
    await expect(trackVideo(tracker, source, options)).rejects.toThrow(message);
  });

  it("a detector that fails", async () => {
    const path = join(folder, "video.y4m");
    await drawVideo(path, { frames: 10 });
    const tracker = await bindTracker(triton, () => {
      throw new Error("no weights");
    });
    await expect(trackVideo(tracker, path)).rejects.toThrow(/tracking '.*video\.y4m' failed: .*no weights/);
  });

  it("a decoder that fails", async () => {
    const path = join(folder, "ffmpeg");
    await writeFile(path, `#!${process.execPath}\nconsole.error("no such camera"); process.exitCode = 3;`);
    await chmod(path, 0o755);
    const tracker = await bindTracker(triton, heldDetector().detect);
    await expect(trackVideo(tracker, "camera", { ffmpeg: path })).rejects.toThrow(
      "cannot decode 'camera': ffmpeg exited with code 3: no such camera",
    );
  });
});

describe("the files of the tutorial", () => {
  it("the script writes the detector as it is checked in", async () => {
    const path = join(folder, "detector.onnx");
    expect((await Program.node(join(tutorial, "make-detector.mjs"), [path], repositoryRoot).ended).code).toBe(
      0,
    );
    expect((await readFile(path)).equals(await readFile(join(tutorial, "detector.onnx")))).toBe(true);
  });
});
