import type { Restrictions } from "@tritonjs/core/frontend";

/** Options of `dashboard`. */
export interface DashboardOptions {
  /** Prefix of all paths, as clients write it; "/dashboard" unless given. */
  readonly path?: string;
  /** Groups of operations that require a header, `{}` for none; those of the `Triton`'s `security` unless given. */
  readonly restrictions?: Restrictions;
  /** Settings that the page lists under "Configuration", by name; none unless given. Leave secrets out. */
  readonly configuration?: Readonly<Record<string, string>>;
  /** Milliseconds between two samples while somebody watches; 1000 unless given. */
  readonly intervalMs?: number;
}
