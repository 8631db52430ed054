import { readFileSync } from "node:fs";

let vnni: boolean | undefined;

/** Whether this processor adds products of int8 in 32 bits. Where it cannot be known, weights keep all bits. */
export function hasVnni(): boolean {
  if (vnni !== undefined) return vnni;
  vnni = true;
  if (process.arch === "x64" && process.platform === "linux") {
    try {
      vnni = /\bavx(512)?_vnni\b/.test(readFileSync("/proc/cpuinfo", "utf8"));
    } catch {
      // Without the file nothing is known.
    }
  }
  return vnni;
}
