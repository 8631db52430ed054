import { readFileSync } from "node:fs";
import { errorFor } from "@tritonjs/protocol";

/**
 * Reads a vocabulary: a line with a unit and its id for each of the ids from 0 on.
 *
 * @throws TritonError INVALID_ARG with the line that is something else
 */
export function readVocabulary(path: string): readonly string[] {
  const units: string[] = [];
  for (const [i, line] of linesOf(path).entries()) {
    const fields = line.split(/\s+/).filter((field) => field !== "");
    if (fields.length === 0) continue;
    const id = Number(fields[1]);
    if (fields.length !== 2 || !/^\d+$/.test(fields[1]!) || units[id] !== undefined) {
      throw badLine(path, i, "a unit and a new id", line);
    }
    units[id] = fields[0]!;
  }
  const missing = units.findIndex((unit) => typeof unit !== "string");
  if (units.length > 0 && missing < 0) return units;
  const id = Math.max(0, missing);
  throw errorFor("INVALID_CONFIG", `${path}: expected a unit with id ${id}, got none`);
}

/**
 * Reads hot words: lines of `word: bonus`, the part of YAML that such files use.
 *
 * @throws TritonError INVALID_ARG with the line that is something else
 */
export function readHotWords(path: string): ReadonlyMap<string, number> {
  const words = new Map<string, number>();
  for (const [i, line] of linesOf(path).entries()) {
    const text = line.split("#")[0]!.trim();
    if (text === "") continue;
    const colon = text.lastIndexOf(":");
    const word = text
      .slice(0, Math.max(0, colon))
      .trim()
      .replace(/^["']+|["']+$/g, "");
    const bonus = text.slice(colon + 1).trim();
    if (word === "" || bonus === "" || !Number.isFinite(Number(bonus))) {
      throw badLine(path, i, "'word: bonus'", text);
    }
    words.set(word, Number(bonus));
  }
  return words;
}

/** @throws TritonError INVALID_ARG if the file cannot be read */
export function linesOf(path: string): readonly string[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw errorFor("INVALID_CONFIG", `cannot read ${path}: ${(cause as Error).message}`, { cause });
  }
  return text.split(/\r?\n/);
}

export function badLine(path: string, index: number, expected: string, got: string) {
  return errorFor("INVALID_CONFIG", `${path}, line ${index + 1}: expected ${expected}, got '${got.trim()}'`);
}
