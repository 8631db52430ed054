import { describe, expect, it } from "vitest";
import { RunPieces } from "../../../src/measure/measure-level.js";
import { windowOf } from "../support/request-rows.js";

const spans = (windows: readonly { readonly start: number; readonly end: number }[]) =>
  windows.map(({ start, end }) => [start, end]);

describe("the pieces of a run", () => {
  it("last from the first send to the last end, without the time before and after", () => {
    const pieces = new RunPieces();
    expect(spans(pieces.next(windowOf(0, 1000, [])))).toEqual([]);
    expect(spans(pieces.next(windowOf(1000, 2000, [{ sent: 900, end: 1500 }])))).toEqual([[900, 2000]]);
    expect(spans(pieces.next(windowOf(2000, 3000, [])))).toEqual([[2000, 3000]]);
    expect(spans(pieces.last(windowOf(3000, 4000, [{ sent: 2500, end: 3200 }])))).toEqual([[3000, 3200]]);
  });

  it("are one window where a run ends within a piece", () => {
    const rows = [
      { scheduled: 20, sent: 25, end: 40 },
      { scheduled: 30, sent: Number.NaN, end: 60, error: "cannot connect" },
    ];
    expect(spans(new RunPieces().last(windowOf(0, 1000, rows)))).toEqual([[20, 60]]);
  });

  it("end with the piece before where the last one has no requests", () => {
    const pieces = new RunPieces();
    pieces.next(windowOf(0, 1000, [{ sent: 10, end: 900 }]));
    expect(pieces.last(windowOf(1000, 1001, []))).toEqual([]);
  });
});
