/** Files of a repository by path; a path that ends in `/` is an empty directory. */
export type Files = Readonly<Record<string, string>>;

/** One row of a recorded repository index. */
export interface IndexRow {
  readonly name: string;
  readonly version?: string;
  readonly state?: string;
  readonly reason?: string;
}

/** A step that sends a request. */
export interface CallStep {
  /** `POST /v2/repository/index` */
  readonly call: string;
  readonly body?: unknown;
  readonly status?: number;
  readonly response?: unknown;
  readonly response_part?: unknown;
  /** Reason why there was no answer. */
  readonly no_answer?: string;
  /** Name of a call whose answer comes later. */
  readonly background_call?: string;
}

/** A step of a scenario: an action, and the repository after it. */
export interface LifecycleStep extends Partial<CallStep> {
  readonly start?: string;
  readonly filesystem?: string;
  readonly write?: Files;
  readonly remove?: readonly string[];
  readonly touch?: readonly string[];
  readonly wait_seconds?: number;
  readonly join?: string;
  readonly signal?: string;
  readonly index_after?: readonly IndexRow[];
  readonly server_ready_after?: number;
  /** Lines of the server's log. */
  readonly log?: readonly string[];
}

/** One line of `config/lifecycle.jsonl`. */
export interface Scenario {
  readonly id: string;
  readonly flags: readonly string[];
  readonly repository: Files;
  readonly repository2?: Files;
  readonly steps: readonly LifecycleStep[];
  readonly exit_code?: number;
  readonly log_at_exit?: readonly string[];
}
