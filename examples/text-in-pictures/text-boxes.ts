import type { Box } from "./picture.js";

/** Probability above which a pixel belongs to text. */
const PIXEL = 0.3;
/** Mean probability that a box needs. */
const BOX = 0.6;
/** The detector marks the core of a line. A line is larger on all sides by this share of the core's height. */
const MARGIN = 0.7;

/** Finds the lines of text in the detector's map, one probability for each pixel. From top to bottom, left to right. */
export function textBoxes(map: Float32Array, width: number, height: number): Box[] {
  const seen = new Uint8Array(map.length);
  const boxes: Box[] = [];
  for (let start = 0; start < map.length; start++) {
    if (seen[start] === 1 || map[start]! < PIXEL) continue;
    const box = boxAround(map, width, height, seen, start);
    if (box !== undefined) boxes.push(box);
  }
  return boxes.sort((a, b) => (sameLine(a, b) ? a.left - b.left : a.top - b.top));
}

/** Bounding box of the pixels of text that are connected with `start`, with its margin. */
function boxAround(map: Float32Array, width: number, height: number, seen: Uint8Array, start: number) {
  let [left, top, right, bottom] = [width, height, 0, 0];
  let [sum, count] = [0, 0];
  const pending = [start];
  seen[start] = 1;
  for (let pixel = pending.pop(); pixel !== undefined; pixel = pending.pop()) {
    const [x, y] = [pixel % width, Math.floor(pixel / width)];
    [left, top] = [Math.min(left, x), Math.min(top, y)];
    [right, bottom] = [Math.max(right, x), Math.max(bottom, y)];
    sum += map[pixel]!;
    count++;
    for (const next of [
      x > 0 ? pixel - 1 : pixel,
      x < width - 1 ? pixel + 1 : pixel,
      y > 0 ? pixel - width : pixel,
      y < height - 1 ? pixel + width : pixel,
    ]) {
      if (seen[next] === 1 || map[next]! < PIXEL) continue;
      seen[next] = 1;
      pending.push(next);
    }
  }
  if (bottom - top < 3 || sum / count < BOX) return undefined;
  const margin = Math.ceil((bottom - top + 1) * MARGIN);
  [left, top] = [Math.max(0, left - margin), Math.max(0, top - margin)];
  [right, bottom] = [Math.min(width - 1, right + margin), Math.min(height - 1, bottom + margin)];
  return { left, top, width: right - left + 1, height: bottom - top + 1 };
}

function sameLine(a: Box, b: Box): boolean {
  return Math.abs(a.top + a.height / 2 - b.top - b.height / 2) < Math.min(a.height, b.height) / 2;
}
