import { readFileSync } from "node:fs";

const data = new URL("../data/", import.meta.url);

/** Reads a JSON file of the recordings, by its path inside `data`. */
export function loadJson<T>(path: string): T {
  return JSON.parse(readFileSync(new URL(path, data), "utf8")) as T;
}

/** Reads a file with one JSON object a line. */
export function loadLines<T>(path: string): T[] {
  return readFileSync(new URL(path, data), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as T);
}
