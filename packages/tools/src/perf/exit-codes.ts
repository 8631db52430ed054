/** Exit codes of `tritonjs perf`. Those from 2 on are perf_analyzer's, except for the interruption. */
export const EXIT = {
  ok: 0,
  assertionFailed: 1,
  unstable: 2,
  noRequests: 3,
  error: 99,
  interrupted: 130,
} as const;

/** One of the exit codes. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
