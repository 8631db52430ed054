/** One row of the repository index. */
export interface ModelIndexEntry {
  readonly name: string;
  readonly version?: string;
  readonly state?: string;
  readonly reason?: string;
}
