import type { ModelFeature } from "./feature.js";

/** What a recorded case asks of the server, as far as it decides whether the case can be replayed. */
export interface Subject {
  readonly area: string;
  /** What the models that it addresses need. */
  readonly features: ReadonlySet<ModelFeature>;
  /** Operations that it calls: `infer`, `generate`, `ModelInfer`, `ModelInfer: OK` with what came of it. */
  readonly operations: readonly string[];
  /** Flags with which the recorded server was started. */
  readonly flags: readonly string[];
}

interface Later {
  /** What the library does not do yet. */
  readonly needs: string;
  readonly area?: RegExp;
  readonly feature?: ModelFeature;
  readonly operation?: RegExp;
  readonly flag?: RegExp;
}

/**
 * What is left for later work: a case that matches any given property of a row waits for what the row needs.
 * Whoever builds that deletes the row.
 */
const later: readonly Later[] = [];

/** What a case needs that is not there yet; `undefined` for a case to be replayed. */
export function neededFor(subject: Subject): string | undefined {
  return later.find((row) => isSelected(row, subject))?.needs;
}

function isSelected({ area, feature, operation, flag }: Later, subject: Subject): boolean {
  return (
    (area?.test(subject.area) ?? false) ||
    (feature !== undefined && subject.features.has(feature)) ||
    subject.operations.some((name) => operation?.test(name)) ||
    subject.flags.some((text) => flag?.test(text))
  );
}
