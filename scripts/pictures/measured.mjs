import { readFileSync } from "node:fs";

/** The figures that a benchmark saved for its pictures, with the machine they were measured on as `note`. */
export function measured(bench) {
  const file = new URL(`./measured/${bench}.json`, import.meta.url);
  const { machine, ...figures } = JSON.parse(readFileSync(file, "utf8"));
  return { ...figures, note: `npm run bench -- ${bench}, on ${machine}` };
}

/** Points of a line from an object of y by x. */
export const pointsOf = (line) => Object.entries(line).map(([x, y]) => [Number(x), y]);
