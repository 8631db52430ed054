/** A difference between two API reports. */
export interface ApiChange {
  readonly kind: "removed" | "changed" | "extended" | "added";
  /** Entry point and name: `@tritonjs/http/fetch: fetchHandler`. */
  readonly name: string;
}
export type Level = "patch" | "minor" | "major";
/** Differences between two API reports of a package. */
export function apiChanges(before: string, after: string): ApiChange[];
/** The lowest level of a changeset that a change may have in a package of some version. */
export function neededLevel(kind: ApiChange["kind"], version: string): Level;
/** Whether a level, `undefined` for none, is at least as high as another one. */
export function reaches(level: Level | undefined, needed: Level): boolean;
/** The higher one of two levels, each of which may be `undefined`. */
export function higher(a: Level | undefined, b: Level | undefined): Level | undefined;
/** The level by which a version was raised; `undefined` for the same version. */
export function levelBetween(before: string, after: string): Level | undefined;
