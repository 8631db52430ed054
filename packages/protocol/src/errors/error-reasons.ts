import type { ErrorCode } from "./code.js";

/** Table entry of a reason. */
export interface ReasonEntry {
  readonly code: ErrorCode;
  /** The failure, in one sentence. */
  readonly meaning: string;
  /** An example of the message; `...` replaces the variable parts. */
  readonly text: string;
  /** What a caller or an operator can do about it. */
  readonly action: string;
}

/**
 * Every reason of a `TritonError`, by code. The reason with the name of its code is the general one: an error without a
 * more specific reason gets it. `docs/errors.md` is generated from this table.
 */
export const errorReasons = {
  UNAVAILABLE: {
    code: "UNAVAILABLE",
    meaning: "The server or the model cannot take the request now.",
    text: "whatever the server or a callback says",
    action:
      "Try again later. A client gives this reason to every answer of a server that has the code UNAVAILABLE.",
  },
  QUEUE_FULL: {
    code: "UNAVAILABLE",
    meaning: "The queue of the model holds as many requests as its configuration allows.",
    text: "[request id: <id_unknown>] Exceeds maximum queue size",
    action: "Try again after `retryAfterMs`. Raise `maxQueueSize` of the queue policy, or add instances.",
  },
  TIMEOUT: {
    code: "UNAVAILABLE",
    meaning: "The request reached its time limit, in a queue or while it ran.",
    text: "Request timeout expired",
    action: "Send fewer requests at a time, give them more time, or add instances.",
  },
  DEADLINE_TOO_CLOSE: {
    code: "UNAVAILABLE",
    meaning:
      "Adaptive batching expects the answer after the time limit of the request, so the request is not queued.",
    text: "Request for model 'm' was refused: expected an answer within 50 ms, got an estimate of 80 ms",
    action: "Try again after `retryAfterMs`, or give the request more time.",
  },
  SEQUENCE_EXPIRED: {
    code: "UNAVAILABLE",
    meaning: "The sequence of the request was idle for longer than `maxSequenceIdleMicroseconds`.",
    text: "timeout of the corresponding sequence has been expired",
    action: "Start the sequence again. Send its requests sooner, or raise the limit.",
  },
  SEQUENCE_LOST: {
    code: "UNAVAILABLE",
    meaning: "The instance that held the state of the sequence failed.",
    text: "an instance of model 'm' failed, and the state of its sequences is lost: start the sequence again",
    action: "Start the sequence again.",
  },
  SERVER_NOT_READY: {
    code: "UNAVAILABLE",
    meaning: "The server has not started yet, or has been closed.",
    text: "Server not ready",
    action: "Wait until the server is ready, then try again.",
  },
  SERVER_STOPPING: {
    code: "UNAVAILABLE",
    meaning: "The server or the model is stopping and takes no new work.",
    text: "Server is stopping, scheduler for model has stopped accepting new inference requests",
    action: "Send the request to another server, or try again after the restart.",
  },
  MODEL_NOT_READY: {
    code: "UNAVAILABLE",
    meaning:
      "The version of the model exists and is not ready: it is loading, was unloaded, or says so itself.",
    text: "Request for unknown model: 'm' version 2 is not at ready state",
    action: "Wait until the model is ready. The repository index gives the state and why.",
  },
  MODEL_STOPPED: {
    code: "UNAVAILABLE",
    meaning: "The model was unloaded while the request, or a change of the model, was under way.",
    text: "model 'm' was stopped before the request finished",
    action: "Send the request again once the model is loaded. Raise the drain time if requests take longer.",
  },
  LOAD_FAILED: {
    code: "UNAVAILABLE",
    meaning: "At least one model could not be loaded.",
    text: "failed to load model 'm' version 1: ...",
    action: "Mend what the message says about each model, then load it again.",
  },
  LOAD_TIMEOUT: {
    code: "UNAVAILABLE",
    meaning: "Opening a model took longer than its time limit.",
    text: "cannot describe the ONNX model 'm': ...",
    action: "Raise the model's parameter `load_timeout_seconds`, or `load-timeout-seconds` of its backend.",
  },
  INSTANCES_FAILED: {
    code: "UNAVAILABLE",
    meaning: "No instance of the model could be restarted after a failure.",
    text: "the message of the failure",
    action:
      "Read the log for the failure of the worker, mend the model, and load it again. Restarts go on meanwhile.",
  },
  ALL_INSTANCES_PASSIVE: {
    code: "UNAVAILABLE",
    meaning: "All instances of the model are passive, so none takes requests.",
    text: "all instances are passive, so the model cannot take requests: set passive: false on one",
    action: "Set `passive: false` for at least one instance group.",
  },
  TIME_LIMIT_EXCEEDED: {
    code: "UNAVAILABLE",
    meaning: "A worker was ended because a batch ran for longer than its limit.",
    text: "instance 'm_0' of model 'm' was ended: ...",
    action: "Raise the execution time limit, or send less work in a request.",
  },
  MODEL_BUSY: {
    code: "UNAVAILABLE",
    meaning: "Models call each other and no instance is free: waiting would never end.",
    text: "model 'a' cannot call model 'b', which is busy and waits for 'a': try again, or add instances",
    action: "Try again. Give the called model more instances.",
  },
  ENSEMBLE_MEMBER_NOT_READY: {
    code: "UNAVAILABLE",
    meaning: "A member of the ensemble is missing, or is not ready.",
    text: "ensemble 'e' depends on 'm' which has no loaded version",
    action: "Load the member. The ensemble becomes ready by itself.",
  },
  REQUEST_MEMORY_EXHAUSTED: {
    code: "UNAVAILABLE",
    meaning: "Requests that are being received and answered hold all the memory they may.",
    text: "request refused: ...",
    action: "Try again after `retryAfterMs`. Raise `requestMemory.byteSize` (`--request-memory-byte-size`).",
  },
  DECOMPRESSION_QUEUE_FULL: {
    code: "UNAVAILABLE",
    meaning: "As many compressed requests as allowed wait to be decompressed.",
    text: "request refused: ...",
    action:
      "Try again after `retryAfterMs`, or send uncompressed. Raise `requestMemory.maxWaitingDecompressions`.",
  },
  PACKAGE_NOT_INSTALLED: {
    code: "UNAVAILABLE",
    meaning: "An optional package is not installed, or does not load on this machine.",
    text: "cannot load onnxruntime-node (...): install it next to @tritonjs/core",
    action: "Install the package that the message names next to `@tritonjs/core`.",
  },
  MODEL_FILE_MISSING: {
    code: "UNAVAILABLE",
    meaning: "The directory of the model's version lacks the file that its backend loads.",
    text: "unable to find '/models/m/1/model.onnx' for model instance 'm'",
    action: "Add the file, or set `default_model_filename`.",
  },
  MODEL_CONTROL_DISABLED: {
    code: "UNAVAILABLE",
    meaning: "Models cannot be loaded or unloaded by request while the repository is polled.",
    text: "explicit model load / unload is not allowed if polling is enabled",
    action: "Use the model control mode `explicit`, or change the files of the repository.",
  },
  NO_SERVER: {
    code: "UNAVAILABLE",
    meaning: "A model that was opened alone asked for something that only a server can do.",
    text: "model 'm' runs without a server, so it cannot ask one",
    action: "Call other models and the repository only from a model that a server runs.",
  },
  FEATURE_DISABLED: {
    code: "UNAVAILABLE",
    meaning: "This server runs without the feature that the request asks about.",
    text: "the server does not support tracing",
    action: "Start the server with the feature.",
  },
  ACCESS_RESTRICTED: {
    code: "UNAVAILABLE",
    meaning: "The protocol is restricted, and the call lacks the header that opens it.",
    text: "This protocol is restricted, expecting header 'triton-grpc-protocol-key'",
    action: "Send the header with its secret value.",
  },
  INVALID_LOG_FORMAT: {
    code: "UNAVAILABLE",
    meaning:
      "A request to change the log settings names an unknown format. Triton uses this code for it over HTTP.",
    text: "invalid argument for --log_format, got: xml",
    action: "Use `default` or `ISO8601`.",
  },
  LISTEN_FAILED: {
    code: "UNAVAILABLE",
    meaning: "A frontend cannot listen on its address and port.",
    text: "port 8000 is already in use: ...",
    action: "Choose another port or address, or end the program that uses it.",
  },
  STORAGE_TIMEOUT: {
    code: "UNAVAILABLE",
    meaning: "The cloud storage of a model repository stopped answering.",
    text: "no answer for 60 seconds",
    action: "Check the network and the storage; the next poll or load tries again.",
  },
  REGION_LIMIT_REACHED: {
    code: "UNAVAILABLE",
    meaning: "As many shared memory regions as allowed are registered.",
    text: "cannot register shared memory region 'r': ...",
    action: "Unregister regions that are not used any more.",
  },
  REGION_DESTROYED: {
    code: "UNAVAILABLE",
    meaning: "The program used a shared memory region after it destroyed the region.",
    text: "cannot use the shared memory region '/r': it has been destroyed",
    action: "Create the region again, or keep it until all its users are done.",
  },
  CONNECTION_FAILED: {
    code: "UNAVAILABLE",
    meaning: "The client could not connect, or the connection ended before the answer.",
    text: "cannot connect to http://127.0.0.1:8000: ...",
    action: "Check the address and that the server runs. The client's `retry` option repeats such calls.",
  },
  CLIENT_TIMEOUT: {
    code: "UNAVAILABLE",
    meaning: "The client stopped waiting: the time limit of the call is over.",
    text: "the server did not answer within 1000 ms",
    action: "Give the call more time, or find out why the server is slow.",
  },
  CLIENT_BUSY: {
    code: "UNAVAILABLE",
    meaning: "The client has as many requests in flight and waiting as its options allow.",
    text: "too many requests of this client (...): send fewer at a time, or raise its limits",
    action: "Send fewer requests at a time, or raise the limits of the client.",
  },
  CLIENT_CLOSED: {
    code: "UNAVAILABLE",
    meaning: "The client was closed before the call.",
    text: "the client is closed",
    action: "Make a new client.",
  },

  INTERNAL: {
    code: "INTERNAL",
    meaning: "The model's code failed, or the server has a fault.",
    text: "the message of whatever was thrown",
    action: "Read the server's log. The request itself is probably fine.",
  },
  WORKER_CRASHED: {
    code: "INTERNAL",
    meaning: "The worker of an instance ended while it had the request.",
    text: "instance 'm_0' of model 'm' crashed: ...",
    action: "The worker restarts by itself. Send the request again unless it may be what ends the worker.",
  },
  INVALID_OUTPUT: {
    code: "INTERNAL",
    meaning: "What the model returned does not match its configuration or the request.",
    text: "model 'm' returned ...",
    action: "Mend the model: names, data types, shapes and the number of rows of its outputs.",
  },
  FILE_NOT_READABLE: {
    code: "INTERNAL",
    meaning: "A file or directory of a model repository could not be read, or a copy of it not written.",
    text: "failed to stat file /models",
    action: "Check that the path exists, and its permissions.",
  },
  STARTUP_FAILED: {
    code: "INTERNAL",
    meaning: "The server was told to exit when a model fails to load, and one did.",
    text: "failed to load all models",
    action: "Mend the models that the message lists, or start with `exitOnError: false`.",
  },
  MALFORMED_JSON: {
    code: "INTERNAL",
    meaning:
      "The JSON of an HTTP request cannot be parsed, or a member has another type. Triton uses this code for it.",
    text: "failed to parse the request JSON buffer: Invalid value. at 12",
    action: "Mend the request: the message gives the position or the member.",
  },
  CIRCULAR_CALL: {
    code: "INTERNAL",
    meaning: "Models call each other in a circle, which could wait forever.",
    text: "circular call of models, ...",
    action: "Break the circle, or give the models more instances.",
  },
  INVALID_ANSWER: {
    code: "INTERNAL",
    meaning:
      "The client received an answer that is not of the v2 protocol, or not of the model that it knows.",
    text: "cannot read the server's answer: ...",
    action: "Check that the address is that of a v2 server, and that no proxy changes its answers.",
  },

  NOT_FOUND: {
    code: "NOT_FOUND",
    meaning: "Something that the request names does not exist.",
    text: "whatever the server or a callback says",
    action: "Check the name.",
  },
  UNKNOWN_MODEL: {
    code: "NOT_FOUND",
    meaning: "The server has no model, or no version of the model, with that name.",
    text: "Request for unknown model: 'm' is not found",
    action: "Check the name and the version; the repository index lists the models. Load the model first.",
  },
  MODEL_FILES_NOT_FOUND: {
    code: "NOT_FOUND",
    meaning: "The model is not in any repository, or its path does not exist.",
    text: "failed to poll model 'm': model not found in any model repository.",
    action: "Check the path, and that the directory of the model is in a repository.",
  },
  MISSING_CONFIG: {
    code: "NOT_FOUND",
    meaning: "The model has no configuration, and none can be completed for it.",
    text: "model configuration is not provided for model 'm'",
    action: "Add a `config.pbtxt`.",
  },
  MISSING_CREDENTIALS: {
    code: "NOT_FOUND",
    meaning: "The file of cloud credentials has none for the path of the repository.",
    text: "Cannot match credential for path s3://bucket/models",
    action: "Add an entry for the path, or its prefix, to the file.",
  },
  REGION_NOT_FOUND: {
    code: "NOT_FOUND",
    meaning: "No shared memory region of that kind is registered with that name.",
    text: "Unable to find shared memory region: 'r'",
    action: "Register the region before requests that use it.",
  },

  INVALID_ARG: {
    code: "INVALID_ARG",
    meaning: "The request, or an argument of a function, is not valid.",
    text: "whatever the server or a callback says",
    action: "Mend what the message says; trying again does not help.",
  },
  INVALID_INPUT: {
    code: "INVALID_ARG",
    meaning: "An input tensor does not match the model, or its data do not match its data type and shape.",
    text: "unexpected inference input 'x' for model 'm'",
    action: "Compare names, data types and shapes with the model's metadata.",
  },
  BATCH_TOO_LARGE: {
    code: "INVALID_ARG",
    meaning: "The request has more rows than the model takes at a time.",
    text: "inference request batch-size must be <= 8 for 'm'",
    action: "Split the request, or raise `maxBatchSize` of the model.",
  },
  INVALID_REQUESTED_OUTPUT: {
    code: "INVALID_ARG",
    meaning: "The request asks for an output that the model lacks, or for it in a way that does not work.",
    text: "unexpected inference output 'y' for model 'm'",
    action:
      "Compare the names of outputs with the model's metadata, and look at the parameters of the output.",
  },
  INVALID_PARAMETER: {
    code: "INVALID_ARG",
    meaning: "A parameter of the request has a reserved name, or a value of another type or range.",
    text: "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
    action: "Rename the parameter or mend its value.",
  },
  INVALID_BODY: {
    code: "INVALID_ARG",
    meaning:
      "The body of the request cannot be taken apart: its encoding, header length or structure is wrong.",
    text: "request body is not valid gzip data",
    action: "Check the headers `Content-Encoding`, `Content-Length` and `Inference-Header-Content-Length`.",
  },
  REQUEST_TOO_LARGE: {
    code: "INVALID_ARG",
    meaning: "The request is larger than the server accepts, in bytes, values, tensors or fields.",
    text: "JSON input 'x' has a byte_size (...) that exceeds the maximum allowed value of ... bytes.",
    action: "Send smaller requests, or raise `maxInputSize` (`--http-max-input-size`).",
  },
  RESPONSE_TOO_LARGE: {
    code: "INVALID_ARG",
    meaning: "The response is larger than a gRPC message can be.",
    text: "Response has byte size 3000000000 which exceeds gRPC's byte size limit 2147483647.",
    action: "Ask for fewer outputs or smaller batches, or use HTTP or shared memory.",
  },
  INVALID_SEQUENCE: {
    code: "INVALID_ARG",
    meaning:
      "The request to a model with sequences has no correlation id, no open sequence, or more than one row.",
    text: "inference request for sequence 5 to model 'm' must specify the START flag on the first request of the sequence",
    action: "Set the sequence's id, and the START flag on its first request.",
  },
  INVALID_VERSION: {
    code: "INVALID_ARG",
    meaning: "The version of a model is not a positive integer.",
    text: "invalid model version specified '0' , version should be an integral value > 0",
    action: "Give a version of at least 1, or none for the highest one that is ready.",
  },
  MODEL_NOT_AVAILABLE: {
    code: "INVALID_ARG",
    meaning:
      "A request for statistics or settings, or one with namespaces, names a model that is not served.",
    text: "requested model 'm' is not available",
    action: "Check the name and the version; the repository index lists the models.",
  },
  AMBIGUOUS_MODEL: {
    code: "INVALID_ARG",
    meaning: "Several repositories have a model with that name.",
    text: "failed to poll model 'm': not unique across all model repositories",
    action: "Keep one of the models, or rename the others.",
  },
  INVALID_CONFIG: {
    code: "INVALID_ARG",
    meaning: "The configuration of a model is not valid, or does not match the model's file.",
    text: "cannot bind model 'm': ...",
    action:
      "Mend the fields that the message names. `tritonjs config check` finds such faults without a server.",
  },
  INVALID_MODEL: {
    code: "INVALID_ARG",
    meaning:
      "A file of the model cannot be read or run: it is damaged, of another format, or its code lacks something.",
    text: "cannot load the ONNX model '/models/m/1/model.onnx': ...",
    action: "Mend or export the file again.",
  },
  INVALID_REPOSITORY: {
    code: "INVALID_ARG",
    meaning: "A model repository, its address, or its credentials are not valid.",
    text: "repository path /models is not a valid directory",
    action: "Mend the path or the credentials.",
  },
  LOAD_REQUEST_FAILED: {
    code: "INVALID_ARG",
    meaning: "A model that a request, or the start of the server, asked for could not be loaded.",
    text: "load failed for model 'm': version 1 is at UNAVAILABLE state: ...",
    action: "Mend what the message says, then load the model again.",
  },
  INVALID_LOAD_REQUEST: {
    code: "INVALID_ARG",
    meaning: "A request to load or unload a model has a name, a configuration or files that are not valid.",
    text: "invalid model name '../m', model name must not contain path traversal characters",
    action: "Mend the request.",
  },
  PATH_NOT_ALLOWED: {
    code: "INVALID_ARG",
    meaning: "A model names a file outside of its directory.",
    text: "data file: expected a path inside the model's directory /models/m, got '../x'",
    action: "Move the file into the directory of the model, and give its path from there.",
  },
  WARMUP_FAILED: {
    code: "INVALID_ARG",
    meaning: "A warm-up sample is not valid, or the model failed when it ran the sample.",
    text: "failed to run warmup sample 'w': ...",
    action: "Mend the sample in `model_warmup`, or the model.",
  },
  INVALID_OPTION: {
    code: "INVALID_ARG",
    meaning: "An option of the library, a frontend or a client is not valid.",
    text: "requestMemory.byteSize: expected an integer of at least 1, got 0",
    action: "Mend the option.",
  },
  INVALID_SETTING: {
    code: "INVALID_ARG",
    meaning: "A request to change trace or log settings has a value that is not valid.",
    text: "Unable to parse 'trace_rate', got: x",
    action: "Mend the value.",
  },
  INVALID_METRIC: {
    code: "INVALID_ARG",
    meaning: "A model made or changed a metric of its own in a way that is not valid.",
    text: "invalid name of a metric '1x': ...",
    action: "Mend the name, labels, buckets or value in the model's code.",
  },
  INVALID_REGION: {
    code: "INVALID_ARG",
    meaning: "A shared memory region cannot be registered, or the request reaches beyond its bytes.",
    text: "Invalid offset + byte size for shared memory region: 'r'",
    action: "Check the key, the offset and the byte size.",
  },

  UNSUPPORTED: {
    code: "UNSUPPORTED",
    meaning: "The server, the client or the platform does not do this.",
    text: "'repository_name' specification is not supported",
    action: "Do without it.",
  },
  DECOUPLED_MODEL: {
    code: "UNSUPPORTED",
    meaning:
      "The model answers with any number of responses, and the call takes exactly one, or the other way round.",
    text: "HTTP end point doesn't support models with decoupled transaction policy",
    action: "Use a streaming call: `stream()`, gRPC `ModelStreamInfer`, or HTTP `generate_stream`.",
  },
  MODEL_NOT_SUPPORTED: {
    code: "UNSUPPORTED",
    meaning: "The model uses an operation, a data type or a file format that its runtime does not have.",
    text: "cannot serve the TensorFlow.js model '/models/m/1/model.json': ...",
    action: "Convert the model, or use another backend.",
  },
  PLATFORM_NOT_SUPPORTED: {
    code: "UNSUPPORTED",
    meaning: "This operating system lacks what the feature needs.",
    text: "Shared memory feature is currently not supported on Windows",
    action: "Run the server on Linux or macOS.",
  },
  SHARED_MEMORY_DISABLED: {
    code: "UNSUPPORTED",
    meaning: "The server does not let clients register shared memory.",
    text: "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
    action:
      "Set `allowClientSharedMemory: true` (`--allow-client-shm=true`), or send tensors in the request.",
  },
  SETTING_READ_ONLY: {
    code: "UNSUPPORTED",
    meaning: "The setting cannot be changed over the network.",
    text: "log file location can not be updated through network protocol",
    action: "Set it when the server starts.",
  },
  NO_FRONTEND: {
    code: "UNSUPPORTED",
    meaning: "`serve()` found no frontend package.",
    text: "serve() has no frontend: ...",
    action: "Install `@tritonjs/http` or `@tritonjs/grpc`, or pass `frontends`.",
  },

  ALREADY_EXISTS: {
    code: "ALREADY_EXISTS",
    meaning: "Something with that name exists already, or a function that runs once was called again.",
    text: "model 'm' is already bound by the program: rename one of them",
    action: "Choose another name, or remove the first one.",
  },
  REGION_EXISTS: {
    code: "ALREADY_EXISTS",
    meaning: "A shared memory region with that name or key exists already.",
    text: "shared memory region 'r' already in manager",
    action: "Unregister the region first, or choose another name.",
  },

  CANCELLED: {
    code: "CANCELLED",
    meaning: "The caller cancelled the request, or its connection ended.",
    text: "the request was cancelled",
    action: "Nothing: nobody waits for the answer any more.",
  },
  SEQUENCE_CANCELLED: {
    code: "CANCELLED",
    meaning: "Another request of the same sequence was cancelled, which ends the sequence.",
    text: "another request of the same sequence was cancelled, which ended the sequence",
    action: "Start the sequence again.",
  },
  CALLER_ENDED: {
    code: "CANCELLED",
    meaning: "A model called another one, and the work that the call belonged to ended first.",
    text: "the call of model 'm' was cancelled: ...",
    action: "Await all calls of other models before the callback returns.",
  },
  CLIENT_CLOSED_MEANWHILE: {
    code: "CANCELLED",
    meaning: "The client was closed while the call was under way.",
    text: "the client was closed",
    action: "Close the client after its last call.",
  },

  UNKNOWN: {
    code: "UNKNOWN",
    meaning: "The failure has no other code.",
    text: "the message of whatever was thrown",
    action: "Read the message and the server's log.",
  },
} as const satisfies Readonly<Record<string, ReasonEntry>>;

type ReasonTable = typeof errorReasons;

/** Why an operation failed: a closed set of names, finer than the codes. */
export type ErrorReason = keyof ReasonTable;

type ReasonsByCode = {
  [Code in ErrorCode]: {
    [Reason in ErrorReason]: ReasonTable[Reason]["code"] extends Code ? Reason : never;
  }[ErrorReason];
};

/** The reasons that belong to a code. */
export type ReasonOf<Code extends ErrorCode> = ReasonsByCode[Code];
