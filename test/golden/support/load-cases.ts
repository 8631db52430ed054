import { readFileSync } from "node:fs";

const data = new URL("../data/", import.meta.url);

/** Reads a file of the recordings, by its path inside `data`. */
export function loadText(path: string): string {
  return readFileSync(new URL(path, data), "utf8");
}

/** Reads a JSON file of the recordings. */
export function loadJson<T>(path: string): T {
  return JSON.parse(loadText(path)) as T;
}

/** Reads a file with one JSON object a line. */
export function loadLines<T>(path: string): T[] {
  return loadText(path)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as T);
}
