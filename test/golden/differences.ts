interface Difference {
  /** Ids of recorded cases, or a pattern of ids. */
  readonly cases: readonly (string | RegExp)[];
  readonly reason: string;
}

/**
 * Where the library differs from the recorded server on purpose. A case on this list must differ: one that agrees
 * fails its test, so that the list stays true.
 */
const differences: readonly Difference[] = [
  {
    cases: ["http-0383-three-inputs", "grpc-0179-three-inputs", "grpc-0180-three-inputs-no-id-missing-none"],
    reason: "the list of missing inputs has both of its brackets",
  },
  {
    cases: ["http-0415-model-error-dtype", "http-0417-model-error-shape", "st_omit_output"],
    reason: "what a model returns is checked against its configuration",
  },
  {
    cases: [
      "http-0703-after-requests",
      "db_order_on_error",
      "st_fail_one",
      "st_fail_rows",
      "metrics/failure-backend",
      "statistics/failure-backend",
    ],
    reason: "a request that the model answers with an error counts as failed; the recorded backend hid it",
  },
  {
    cases: ["db_opt_none"],
    reason: "a request without any input is refused before it is queued, with a text that says why",
  },
  {
    cases: ["statistics/nobatch"],
    reason: "a batch without a batch axis counts as one row; the recorded identity backend says none",
  },
  {
    cases: ["http-0241-fp64-ints"],
    reason: "a number of more than 17 digits is read as the nearest double",
  },
  {
    cases: ["http-0538-resp-gzip-sp"],
    reason: "white space around a header's value is not part of it",
  },
  {
    cases: ["db_delay_busy"],
    reason:
      "a request joins the batch that waits for an instance at once, not when an idle wait of 500 ms ends",
  },
  {
    cases: ["cn_queued", "cn_direct", "metrics/failure-canceled-grpc", "statistics/failure-canceled-grpc"],
    reason: "a request that is given up leaves the queue, whichever queue it is",
  },
  {
    cases: [
      "cn_executing",
      "cn_executing_watch",
      "cn_order",
      "metrics/failure-canceled-grpc-running",
      "statistics/failure-canceled-grpc-running",
    ],
    reason:
      "a request that is given up while it runs ends there, counts as cancelled and holds no other back",
  },
];

/** Why a case differs on purpose; `undefined` when it must agree. */
export function differenceOf(id: string): string | undefined {
  return differences.find(({ cases }) =>
    cases.some((entry) => (typeof entry === "string" ? entry === id : entry.test(id))),
  )?.reason;
}
