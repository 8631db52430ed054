import { TritonError } from "@tritonjs/protocol";
import { MAX_DATA_DEPTH } from "../limits.js";
import {
  CARRIAGE_RETURN,
  CLOSE_BRACKET,
  COMMA,
  LINE_FEED,
  MINUS,
  NINE,
  OPEN_BRACKET,
  SPACE,
  TAB,
  UPPER_I,
  UPPER_N,
  ZERO,
} from "./ascii.js";
import type { Cursor } from "./cursor.js";
import { PackedNumbers } from "./json-value.js";
import { readNumber } from "./read-number.js";
import { endsRuns, type Run, readRun } from "./read-run.js";

/*
 * The fast path for tensors. The numbers of an array go into a scratch array that all documents share. `readRun` reads
 * plain numbers, and `readNumber` reads each of the others.
 */

const FIRST_SCRATCH = 1024;
const MAX_KEPT_SCRATCH = 1 << 20;

let scratch: Float64Array = new Float64Array(FIRST_SCRATCH);
/** Offset in the scratch array of the next array of this document. */
let scratchUsed = 0;
/** Limit on the numbers of this document. */
let scratchLimit = FIRST_SCRATCH;

/**
 * Releases the numbers of the last document: its arrays must not be used any more.
 *
 * @param limit limit on the numbers of the next document
 */
export function reuseScratch(limit: number): void {
  scratchUsed = 0;
  scratchLimit = limit;
  if (scratch.length > MAX_KEPT_SCRATCH) scratch = new Float64Array(FIRST_SCRATCH);
}

/**
 * Reads the array whose bracket is next if it holds only numbers. Otherwise returns undefined and leaves the cursor at
 * the failure. The general parser then starts over from the bracket and reports the fault.
 */
export function readPacked(cursor: Cursor): PackedNumbers | undefined {
  const { bytes } = cursor;
  if (!endsRuns(bytes)) return undefined;
  const start = cursor.at;
  const from = scratchUsed;
  const run: Run = { at: start, count: from, valueExpected: true, fractions: false, minuses: false };
  let depth = 0;
  let nested = false;
  for (;;) {
    const token = bytes[run.at];
    if (token === undefined) break;
    if (token === COMMA) {
      if (run.valueExpected) break;
      run.valueExpected = true;
      run.at++;
    } else if (token === CLOSE_BRACKET) {
      if (run.valueExpected) break;
      run.at++;
      if (--depth === 0) {
        cursor.at = run.at;
        scratchUsed = run.count;
        const values = scratch.subarray(from, run.count);
        return new PackedNumbers(values, !run.fractions, run.minuses, nested, bytes, start);
      }
    } else if (token === OPEN_BRACKET) {
      if (!run.valueExpected || ++depth >= MAX_DATA_DEPTH) break;
      if (depth > 1) nested = true;
      run.at++;
    } else if (token === SPACE || token === LINE_FEED || token === CARRIAGE_RETURN || token === TAB) {
      run.at++;
    } else {
      if (!run.valueExpected || !isNumberStart(token)) break;
      const before = run.at;
      if (run.count === scratch.length) growScratch();
      readRun(bytes, run, scratch);
      if (run.at === before && run.count < scratch.length && !readOne(cursor, run)) break;
    }
  }
  cursor.at = run.at;
  return undefined;
}

/** Reads a number of any form; false for an integer that a double cannot hold. */
function readOne(cursor: Cursor, run: Run): boolean {
  cursor.at = run.at;
  const read = readNumber(cursor);
  run.at = cursor.at;
  if (typeof read === "bigint") return false;
  let value = read;
  if (typeof value !== "number") {
    run.fractions = true;
    value = value.value;
  }
  if (value < 0 || Object.is(value, -0)) run.minuses = true;
  scratch[run.count++] = value;
  run.valueExpected = false;
  return true;
}

/** True for digits, a minus, and the first letters of `NaN` and `Infinity`. */
function isNumberStart(code: number): boolean {
  return (code >= ZERO && code <= NINE) || code === MINUS || code === UPPER_N || code === UPPER_I;
}

function growScratch(): void {
  if (scratch.length >= scratchLimit) {
    throw new TritonError("INVALID_ARG", `request JSON: expected at most ${scratchLimit} numbers, got more`, {
      reason: "REQUEST_TOO_LARGE",
    });
  }
  const grown = new Float64Array(Math.min(scratch.length * 2, scratchLimit));
  grown.set(scratch);
  scratch = grown;
}
