import type { LoadLevel } from "../load/load-level.js";

/** A range of levels: `end` 0 has no end. */
export interface LevelRange {
  readonly start: number;
  readonly end: number;
  readonly step: number;
}

/** A part of a ramp or of a spike. */
export interface LoadPhase {
  readonly name: string;
  readonly level: LoadLevel;
  readonly durationMs: number;
}

/** What is measured, and in which order. */
export type LoadPlan =
  | { readonly kind: "single"; readonly level: LoadLevel }
  | { readonly kind: "sweep"; readonly range: LevelRange; levelAt(value: number): LoadLevel }
  | { readonly kind: "search"; readonly range: LevelRange; levelAt(value: number): LoadLevel }
  | { readonly kind: "phases"; readonly phases: readonly LoadPhase[] };
