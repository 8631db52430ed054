import { once } from "node:events";
import { createWriteStream, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

/* Draws a video with known boxes: a bright rectangle that moves over noise. `make-video.mjs <file.y4m>` writes both. */

/** Corners of the rectangle in a frame: left, top, right, bottom, all of them inside it. */
export function boxOf(index, { width, height, step = 3 }) {
  const [w, h] = [Math.round(width / 8), Math.round(height / 6)];
  const bounce = (position, room) =>
    Math.floor(position / room) % 2 === 0 ? position % room : room - (position % room);
  const left = 1 + bounce(index * step, width - w - 2);
  const top = 1 + bounce(index * (step + 1), height - h - 2);
  return [left, top, left + w - 1, top + h - 1];
}

/** The luma of a frame. */
export function drawFrame(index, { width, height, step }) {
  const [left, top, right, bottom] = boxOf(index, { width, height, step });
  const luma = new Uint8Array(width * height);
  for (let i = 0; i < luma.length; i++) luma[i] = 16 + (((i * 2654435761 + index * 40503) >>> 16) % 48);
  for (let y = top; y <= bottom; y++) luma.fill(235, y * width + left, y * width + right + 1);
  return luma;
}

/** Writes a Y4M file, which is raw frames behind a line of text. @returns the boxes */
export async function drawVideo(path, { width = 160, height = 120, frames = 60, fps = 25, step = 3 } = {}) {
  const file = createWriteStream(path);
  const colours = new Uint8Array((width * height) / 2).fill(128);
  file.write(`YUV4MPEG2 W${width} H${height} F${fps}:1 Ip A1:1 C420jpeg\n`);
  for (let index = 0; index < frames; index++) {
    file.write("FRAME\n");
    file.write(drawFrame(index, { width, height, step }));
    if (!file.write(colours)) await once(file, "drain");
  }
  file.end();
  await once(file, "finish");
  return Array.from({ length: frames }, (_, index) => boxOf(index, { width, height, step }));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const path = process.argv[2] ?? "video.y4m";
  writeFileSync(`${path}.boxes.json`, JSON.stringify(await drawVideo(path)));
}
