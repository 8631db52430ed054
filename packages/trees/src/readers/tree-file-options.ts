/** How a file is read. */
export interface TreeFileOptions {
  /** Whether fields of an XGBoost document that are not known are ignored rather than refused. */
  readonly allowUnknownFields: boolean;
  /** Boosting rounds to use; "best" for those up to XGBoost's `best_iteration`; undefined for all. */
  readonly rounds: number | "best" | undefined;
}
