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
    cases: [
      "http-0383-three-inputs",
      "grpc-0179-three-inputs",
      "grpc-0180-three-inputs-no-id-missing-none",
      "sd_client_sends_control",
    ],
    reason: "the list of missing inputs has both of its brackets",
  },
  {
    cases: [
      "http-0415-model-error-dtype",
      "http-0417-model-error-shape",
      "grpc-0360-err-wrong-out-dtype",
      "grpc-0361-err-wrong-out-name",
      "grpc-0363-err-no-output-requested",
      "st_omit_output",
    ],
    reason: "what a model returns is checked against its configuration",
  },
  {
    cases: [
      "http-0703-after-requests",
      "db_order_on_error",
      "st_fail_one",
      "st_fail_rows",
      "sd_model_error",
      /^en_error_/,
      /^(metrics|statistics)\/(failure-backend|ensemble-failure)$/,
    ],
    reason: "a request that the model answers with an error counts as failed; the recorded backend hid it",
  },
  {
    cases: ["grpc-0300-param-echo-double"],
    reason: "any parameter will do; the recorded backend cannot give doubles back",
  },
  {
    cases: ["grpc-0534-queue-timeout-not-reached"],
    reason: "a request that waits 80 of its 200 ms is served; the recorded server missed to wake up",
  },
  {
    cases: ["grpc-0335-param-timeout-negative"],
    reason: "a timeout beyond 2^53 microseconds, which is 285 years, is rounded to a double",
  },
  {
    cases: ["qp_override_no_default"],
    reason: "a request's timeout counts wherever it may override, also when there is no default",
  },
  {
    cases: ["qp_delay_counts_size"],
    reason: "an idle instance takes the next request at once, before the poll at which it would be late too",
  },
  {
    cases: ["db_opt_none"],
    reason: "a request without any input is refused before it is queued, with a text that says why",
  },
  {
    cases: ["statistics/namespace"],
    reason: "models in namespaces have statistics; the recorded server looks for them under another name",
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
    cases: ["http-0690-http10"],
    reason: "HTTP/1.0 has no chunks: the end of the connection is the end of the answer",
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
      "de_cancel",
      "sd_cancel_executing",
      "metrics/failure-canceled-grpc-running",
      "statistics/failure-canceled-grpc-running",
      "grpc-0551-stats-slow",
    ],
    reason:
      "a request that is given up while it runs ends there, counts as cancelled and holds no other back",
  },
  {
    cases: [
      "ca_shape_collide",
      "ca_params",
      "ca_outputs",
      "ca_response_params",
      "ca_omitted",
      "ca_cancelled",
      "ca_error_batch",
      "statistics/cache",
      "metrics/cache",
    ],
    reason:
      "the key of the response cache holds shapes, data types, requested outputs and parameters; errors are not kept",
  },
  {
    cases: ["metrics/no-counters"],
    reason: "counter_latencies=false takes the sums of latencies away, not the counts of requests",
  },
  {
    cases: ["ca_in_flight"],
    reason: "of equal requests under way only one runs",
  },
  {
    cases: ["ca_order_after_hit"],
    reason: "a cache hit does not break the order of the answers after it",
  },
  {
    cases: [/^en_parallel_fail/, "ed_fail_a", "en_cancel_mid"],
    reason:
      "once a step has failed, or the request is given up, its steps under way are given up and no other starts",
  },
  {
    cases: ["en_passthrough", "http-0476-ensemble-binary"],
    reason: "an output of an ensemble can be asked for alone, also when another step reads it",
  },
  {
    cases: ["http-0807-ensemble-both", "http-0809-ensemble-both-one-binary"],
    reason: "the parameters of an ensemble's answer come once, not once for each output",
  },
  {
    cases: ["grpc-0367-err-ensemble-noout", /^en_missing_(final|tensor)$/],
    reason: "what a member returns is checked against its configuration",
  },
  {
    cases: ["en_inflight", "prototxt/e-ok-two", "prototxt/e-max-inflight"],
    reason: "max_inflight_requests is known",
  },
  {
    cases: ["wu_wrong_name", "prototxt/v-warmup-wrong-input"],
    reason: "a warmup sample that gives data for an input that there is not says so",
  },
  {
    cases: ["db_shape_tensor"],
    reason: "any model may have shape tensors, not those of TensorRT alone",
  },
  {
    cases: ["sd_cancel_queued", "sd_cancel_backlog"],
    reason: "requests behind one that is given up in its sequence end at once, and their error says why",
  },
  {
    cases: [/^grpc-\d+-shm-register-reserved-prefix/],
    reason: "a key of the server's own is refused before it is looked for, as in the newer sources",
  },
  {
    cases: [
      "grpc-0597-shm-status-all",
      "grpc-0615-shm-status-after-errors",
      "grpc-0658-shm-status-after-unregister",
    ],
    reason: "one memory object can be registered under two names; the recorded server fails to open it again",
  },
  {
    cases: [/^it_(two|with)/],
    reason: "the end of an iterative sequence does not count as a failed request",
  },
  {
    cases: ["http-0935-unload-bad-json", "http-0732-unload-bad-json"],
    reason: "the body of an unload request has to be JSON, as newer servers want it",
  },
  {
    cases: ["grpc-0777-stats-all", "grpc-0778-stats-version-only"],
    reason: "other models are in service than when it was recorded",
  },
  {
    cases: ["grpc-0776-stats-sq", "grpc-0548-stats-rep", "http-0810-decoupled-cpp"],
    reason:
      "requests and single responses of every decoupled model are counted; recorded backends did one or the other",
  },
  {
    cases: ["bad-names"],
    reason: "names that lead out of the repository are refused as such, as newer servers do",
  },
  {
    cases: [/^prototxt\/(tf-enum-number-(unknown|negative)|v-bi-kind-num)$/],
    reason: "a number that has no name in its enumeration is refused with the field that has it",
  },
  {
    cases: [
      "prototxt/tf-float-nan",
      "prototxt/f-seq-oldest-neg",
      "prototxt/v-dup-output-py",
      /^prototxt\/v-seq-state-(noname|dup|nodtype)$/,
    ],
    reason:
      "nonsense is refused: no number for a share, -1 sequences, a name twice, a state without name or data type",
  },
  {
    cases: [/^prototxt\/f-runtime-(missing|py)$/],
    reason: "backends are part of the library: there is nowhere to search for another",
  },
  {
    cases: ["prototxt/f-instance-full", /^prototxt\/f-seq-state(-file)?$/],
    reason: "64-bit integers are numbers everywhere in the JSON of a configuration",
  },
  {
    cases: [/^prototxt\/v-shape-tensor-out$/],
    reason: "shape tensors are for every backend",
  },
  {
    cases: ["autocomplete/py-input-baddtype"],
    reason: "a model may give a data type as the protocol names it, without TYPE_",
  },
  {
    cases: [/^autocomplete\/dtype-(BFLOAT16|COMPLEX\d+)$/],
    reason: "a tensor of a type that the protocol has not is refused with its name and what to do about it",
  },
  {
    cases: [/^autocomplete\/file-(empty|garbage|truncated)$/],
    reason:
      "a file that is no ONNX model is refused with what is wrong where in it, without ONNX Runtime's sources",
  },
  {
    cases: [/^prototxt\/r-version-(zero|neg|mixed|big|space)$/],
    reason:
      "versions are integers from 1 to 2^53-1, and their directories are named by them, without blanks and letters after",
  },
  {
    cases: [/^prototxt\/d-(tf-graphdef|platform-tf)$/],
    reason: "there is a backend tensorflow",
  },
  {
    cases: [/^prototxt\/v-(warmup-file|label)-escape$/],
    reason:
      "paths out of the model's directory are refused for what they are, whether there is a file or not",
  },
  {
    cases: ["cli/help"],
    reason: "who asks for help and gets it has made no mistake: the exit code is 0",
  },
  {
    cases: [/^cli\/(trace|allow-sagemaker|allow-vertex-ai|allow-client-shm)/],
    reason:
      "options that the recorded build did not know are read as by one that does, with a warning where they have no effect",
  },
  {
    cases: [
      /^cli\/(metrics-interval-ms|pinned-memory-pool-byte-size|buffer-manager-thread-count|min-supported-compute-capability|grpc-infer-thread-count|http-thread-count)=-?\d+$/,
    ],
    reason: "a warning says that an option has no effect",
  },
  {
    cases: [/^cli\/\w+-port=(-\d+|6553[6-9]|655[4-9]\d|65[6-9]\d\d|6[6-9]\d{3}|[7-9]\d{4}|\d{6,})$/],
    reason: "ports that there are none of are refused",
  },
  {
    cases: [
      "cli/metrics-port-in-use",
      "cli/log-file-bad",
      "cli/rate-limit-resource=R:-1",
      /^cli\/(http|grpc)-header-forward-pattern=\[$/,
    ],
    reason: "a server that cannot do all that it was asked for does not start",
  },
];

/** Why a case differs on purpose; `undefined` when it must agree. */
export function differenceOf(id: string): string | undefined {
  return differences.find(({ cases }) =>
    cases.some((entry) => (typeof entry === "string" ? entry === id : entry.test(id))),
  )?.reason;
}
