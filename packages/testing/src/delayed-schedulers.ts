import process from "node:process";

/** Number of requests that a batcher waits for before its first batch, once. */
export interface SchedulerDelay {
  /** Requests that each dynamic or sequence batcher waits for. @default 0 */
  readonly requests?: number;
  /** Requests in its backlog that each sequence batcher waits for besides. @default 0 */
  readonly backlog?: number;
}

const VARIABLES = {
  requests: "TRITONSERVER_DELAY_SCHEDULER",
  backlog: "TRITONSERVER_BACKLOG_DELAY_SCHEDULER",
} as const;

/**
 * Makes a server whose batchers wait for a number of requests, so that a test decides what the first batch is. It sets
 * Triton's environment variables while `make` runs.
 *
 * @returns what `make` returns
 * @example
 * ```ts
 * const triton = withSchedulerDelay({ requests: 3 }, () => new Triton());
 * ```
 */
export function withSchedulerDelay<T>(delay: SchedulerDelay, make: () => T): T {
  const { env } = process;
  const before = Object.values(VARIABLES).map((name) => [name, env[name]] as const);
  for (const [key, name] of Object.entries(VARIABLES))
    env[name] = String(delay[key as keyof SchedulerDelay] ?? 0);
  try {
    return make();
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete env[name];
      else env[name] = value;
    }
  }
}
