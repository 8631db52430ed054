/**
 * The closed set of error codes, with the names of Triton's C API. Each transport maps them to its own status
 * (`INVALID_ARG` is HTTP 400 and gRPC `INVALID_ARGUMENT`).
 */
export type ErrorCode =
  | "UNKNOWN"
  | "INTERNAL"
  | "NOT_FOUND"
  | "INVALID_ARG"
  | "UNAVAILABLE"
  | "UNSUPPORTED"
  | "ALREADY_EXISTS"
  | "CANCELLED";

interface ReasonEntry {
  readonly code: ErrorCode;
  readonly meaning: string;
  /** An example of the message; `...` replaces the variable parts. */
  readonly text: string;
  /** Advice for a caller or an operator. */
  readonly action: string;
}

/**
 * Every reason of a `TritonError`, by code. The reason with the name of its code is the general one: an error without a
 * more specific reason gets it. `docs/errors.md` is generated from this table.
 */
export const errorReasons = {
  UNAVAILABLE: {
    code: "UNAVAILABLE",
    meaning: "The server or the model cannot accept the request now.",
    text: "the message of the server or the callback",
    action:
      "Try again later. A client uses this reason for every UNAVAILABLE answer of a server, except a timeout.",
  },
  QUEUE_FULL: {
    code: "UNAVAILABLE",
    meaning: "The queue of the model is full: it has as many requests as its configuration allows.",
    text: "[request id: <id_unknown>] Exceeds maximum queue size",
    action: "Try again after `retryAfterMs`. Raise `maxQueueSize` of the queue policy, or add instances.",
  },
  TIMEOUT: {
    code: "UNAVAILABLE",
    meaning: "The request reached its time limit, in a queue or during its execution.",
    text: "Request timeout expired",
    action: "Send fewer requests at a time, raise their time limit, or add instances.",
  },
  FILE_NOT_WRITTEN: {
    code: "UNAVAILABLE",
    meaning: "A file of a model could not be written. A file that was there before is unchanged.",
    text: "cannot write 'model.onnx': ENOSPC: no space left on device, write; a file that was there is unchanged",
    action: "Make room on the disk, or give another folder that this process may write.",
  },
  DEADLINE_TOO_CLOSE: {
    code: "UNAVAILABLE",
    meaning:
      "A batcher with a target latency or deadlines estimates that the answer would come too late, so it rejects the request.",
    text: "Request for model 'm' was refused: expected an answer within 50 ms, got an estimate of 80 ms",
    action: "Try again after `retryAfterMs`, or raise the time limit of the request.",
  },
  SEQUENCE_EXPIRED: {
    code: "UNAVAILABLE",
    meaning: "The sequence of the request was idle for longer than `maxSequenceIdleMicroseconds`.",
    text: "timeout of the corresponding sequence has been expired",
    action: "Start the sequence again. Send its requests at shorter intervals, or raise the limit.",
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
    meaning: "The server or the model is stopping and accepts no new requests.",
    text: "Server is stopping, scheduler for model has stopped accepting new inference requests",
    action: "Send the request to another server, or try again after the restart.",
  },
  MODEL_NOT_READY: {
    code: "UNAVAILABLE",
    meaning:
      "The version of the model exists but is not ready: it is loading, was unloaded, or reports so itself.",
    text: "Request for unknown model: 'm' version 2 is not at ready state",
    action: "Wait until the model is ready. The repository index gives its state and the reason.",
  },
  MODEL_STOPPED: {
    code: "UNAVAILABLE",
    meaning: "The model was unloaded while the request, or a change of the model, was in progress.",
    text: "model 'm' was stopped before the request finished",
    action: "Send the request again once the model is loaded. Raise the drain time if requests take longer.",
  },
  LOAD_FAILED: {
    code: "UNAVAILABLE",
    meaning: "At least one model could not be loaded.",
    text: "failed to load model 'm' version 1: ...",
    action: "Fix the fault that the message names for each model, then load the model again.",
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
      "Find the failure of the worker in the log, fix the model, and load it again. Restarts continue meanwhile.",
  },
  ALL_INSTANCES_PASSIVE: {
    code: "UNAVAILABLE",
    meaning: "All instances of the model are passive, so the model cannot take requests.",
    text: "all instances are passive, so the model cannot take requests: set passive: false on one",
    action: "Set `passive: false` for at least one instance group.",
  },
  TIME_LIMIT_EXCEEDED: {
    code: "UNAVAILABLE",
    meaning: "A worker was ended because a batch exceeded its execution time limit.",
    text: "instance 'm_0' of model 'm' was ended: ...",
    action: "Raise the execution time limit, or send smaller requests.",
  },
  MODEL_BUSY: {
    code: "UNAVAILABLE",
    meaning: "Models call each other and no instance is idle: waiting would be a deadlock.",
    text: "model 'a' cannot call model 'b', which is busy and waits for 'a': try again, or add instances",
    action: "Try again. Give the called model more instances.",
  },
  ENSEMBLE_MEMBER_NOT_READY: {
    code: "UNAVAILABLE",
    meaning: "A member of the ensemble is missing or not ready.",
    text: "ensemble 'e' depends on 'm' which has no loaded version",
    action: "Load the member. The ensemble then becomes ready by itself.",
  },
  REQUEST_MEMORY_EXHAUSTED: {
    code: "UNAVAILABLE",
    meaning: "The requests in flight use up the memory budget.",
    text: "request refused: ...",
    action: "Try again after `retryAfterMs`. Raise `requestMemory.byteSize` (`--request-memory-byte-size`).",
  },
  DECOMPRESSION_QUEUE_FULL: {
    code: "UNAVAILABLE",
    meaning: "The queue of compressed requests that wait for decompression is full.",
    text: "request refused: ...",
    action:
      "Try again after `retryAfterMs`, or do not compress requests. Raise `requestMemory.maxWaitingDecompressions`.",
  },
  PACKAGE_NOT_INSTALLED: {
    code: "UNAVAILABLE",
    meaning: "An optional package is not installed, or cannot be loaded on this machine.",
    text: "cannot load onnxruntime-node (...): install it next to @tritonjs/backends",
    action: "Install the package in the message next to the package of tritonjs that needs it.",
  },
  PACKAGE_BUNDLED: {
    code: "UNAVAILABLE",
    meaning: "A bundler joined a package to another file, so a worker cannot find its program.",
    text: "cannot start a worker: expected its program at ..., got no such file. A bundler joined ...",
    action:
      "Make `@tritonjs/*` external in the bundler's options. [Installing](installing.md#bundlers) has the recipes.",
  },
  MODEL_FILE_MISSING: {
    code: "UNAVAILABLE",
    meaning: "The model file is missing in the directory of the model's version.",
    text: "unable to find '/models/m/1/model.onnx' for model instance 'm'",
    action: "Add the file, or set `default_model_filename`.",
  },
  MODEL_CONTROL_DISABLED: {
    code: "UNAVAILABLE",
    meaning: "Requests cannot load or unload models while the repository is polled.",
    text: "explicit model load / unload is not allowed if polling is enabled",
    action: "Use the model control mode `explicit`, or change the files in the repository.",
  },
  NO_SERVER: {
    code: "UNAVAILABLE",
    meaning: "A model that runs without a server used a function that requires one.",
    text: "model 'm' runs without a server, so it cannot ask one",
    action: "Call other models and the repository only from a model that a server runs.",
  },
  FEATURE_DISABLED: {
    code: "UNAVAILABLE",
    meaning: "The request needs a feature that is disabled on this server.",
    text: "the server does not support tracing",
    action: "Enable the feature when the server starts.",
  },
  ACCESS_RESTRICTED: {
    code: "UNAVAILABLE",
    meaning: "The protocol is restricted, and the call lacks the required header.",
    text: "This protocol is restricted, expecting header 'triton-grpc-protocol-key'",
    action: "Send the header with its secret value.",
  },
  UNAUTHENTICATED: {
    code: "UNAVAILABLE",
    meaning:
      "The hook `security.authenticate` refused a request without valid credentials. HTTP answers 401, gRPC UNAUTHENTICATED.",
    text: "the message of the hook",
    action: "Send the credentials that the server asks for.",
  },
  PERMISSION_DENIED: {
    code: "UNAVAILABLE",
    meaning:
      "The hook `security.authenticate` refused a client that it knows. HTTP answers 403, gRPC PERMISSION_DENIED.",
    text: "the message of the hook, or: access denied",
    action: "Use credentials with the necessary rights.",
  },
  INVALID_LOG_FORMAT: {
    code: "UNAVAILABLE",
    meaning: "A request to change the log settings has an unknown format. Over HTTP, Triton uses this code.",
    text: "invalid argument for --log_format, got: xml",
    action: "Use `default`, `ISO8601` or `json`.",
  },
  LISTEN_FAILED: {
    code: "UNAVAILABLE",
    meaning: "A frontend cannot listen on its address and port.",
    text: "port 8000 is already in use: ...",
    action: "Choose another port or address, or stop the program that uses it.",
  },
  STORAGE_TIMEOUT: {
    code: "UNAVAILABLE",
    meaning: "The cloud storage of a model repository stopped answering.",
    text: "no answer for 60 seconds",
    action: "Check the network and the storage. The next poll or load tries again.",
  },
  REGION_LIMIT_REACHED: {
    code: "UNAVAILABLE",
    meaning: "The number of registered shared memory regions has reached its limit.",
    text: "cannot register shared memory region 'r': ...",
    action: "Unregister regions that are no longer used.",
  },
  REGION_DESTROYED: {
    code: "UNAVAILABLE",
    meaning: "The program used a shared memory region after it destroyed the region.",
    text: "cannot use the shared memory region '/r': it has been destroyed",
    action: "Create the region again, or destroy it only after its last use.",
  },
  CONNECTION_FAILED: {
    code: "UNAVAILABLE",
    meaning: "The client could not connect, or the connection ended before the answer.",
    text: "cannot connect to http://127.0.0.1:8000: ...",
    action: "Check the address and that the server runs. The client's `retry` option repeats such calls.",
  },
  CLIENT_TIMEOUT: {
    code: "UNAVAILABLE",
    meaning: "The call reached its time limit before the server answered.",
    text: "the server did not answer within 1000 ms",
    action: "Raise the time limit of the call, or find out why the server is slow.",
  },
  CLIENT_BUSY: {
    code: "UNAVAILABLE",
    meaning: "The client's queue is full: its limits on requests in flight and waiting are reached.",
    text: "too many requests of this client (...): send fewer at a time, or raise its limits",
    action: "Send fewer requests at a time, or raise the limits of the client.",
  },
  CLIENT_CLOSED: {
    code: "UNAVAILABLE",
    meaning: "The client was closed before the call.",
    text: "the client is closed",
    action: "Create a new client.",
  },

  INTERNAL: {
    code: "INTERNAL",
    meaning: "The model's code failed, or the server has a fault.",
    text: "the message of the thrown error",
    action: "Read the server's log. The request itself is probably valid.",
  },
  WORKER_CRASHED: {
    code: "INTERNAL",
    meaning: "The worker of an instance died while it ran the request.",
    text: "instance 'm_0' of model 'm' crashed: ...",
    action:
      "The worker restarts by itself. Send the request again, unless the request itself may crash the worker.",
  },
  INVALID_OUTPUT: {
    code: "INTERNAL",
    meaning: "The outputs of the model do not match its configuration or the request.",
    text: "model 'm' returned ...",
    action: "Fix the model: names, data types, shapes and the number of rows of its outputs.",
  },
  FILE_NOT_READABLE: {
    code: "INTERNAL",
    meaning: "A file or directory of a model repository could not be read, or its copy could not be written.",
    text: "failed to stat file /models",
    action: "Check the path and its permissions.",
  },
  STARTUP_FAILED: {
    code: "INTERNAL",
    meaning: "A model failed to load, and the server is configured to exit then.",
    text: "failed to load all models",
    action: "Fix the models in the message, or start with `exitOnError: false`.",
  },
  MALFORMED_JSON: {
    code: "INTERNAL",
    meaning:
      "The JSON of an HTTP request cannot be parsed, or a member has the wrong type. Triton uses this code.",
    text: "failed to parse the request JSON buffer: Invalid value. at 12",
    action: "Fix the request: the message gives the position or the member.",
  },
  CIRCULAR_CALL: {
    code: "INTERNAL",
    meaning: "Models call each other in a circle, which could deadlock.",
    text: "circular call of models, ...",
    action: "Break the circle, or give the models more instances.",
  },
  INVALID_ANSWER: {
    code: "INTERNAL",
    meaning:
      "The answer to the client does not follow the v2 protocol, or does not match the model's configuration.",
    text: "cannot read the server's answer: ...",
    action: "Check that the address belongs to a v2 server, and that no proxy changes its answers.",
  },

  NOT_FOUND: {
    code: "NOT_FOUND",
    meaning: "The request names an object that does not exist.",
    text: "the message of the server or the callback",
    action: "Check the name.",
  },
  UNKNOWN_ROLLOUT: {
    code: "NOT_FOUND",
    meaning: "The model has no rollout.",
    text: "model 'm' has no rollout",
    action: "Start one, or check the name of the model.",
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
    meaning: "The model has no configuration, and its files are not enough to derive one.",
    text: "model configuration is not provided for model 'm'",
    action: "Add a `config.pbtxt`.",
  },
  MISSING_CREDENTIALS: {
    code: "NOT_FOUND",
    meaning: "The file of cloud credentials has no entry for the path of the repository.",
    text: "Cannot match credential for path s3://bucket/models",
    action: "Add an entry for the path, or its prefix, to the file.",
  },
  REGION_NOT_FOUND: {
    code: "NOT_FOUND",
    meaning: "No shared memory region of that kind is registered with that name.",
    text: "Unable to find shared memory region: 'r'",
    action: "Register the region before requests use it.",
  },

  INVALID_ARG: {
    code: "INVALID_ARG",
    meaning: "The request, or an argument of a function, is not valid.",
    text: "the message of the server or the callback",
    action: "Fix the fault in the message. A retry does not help.",
  },
  INVALID_INPUT: {
    code: "INVALID_ARG",
    meaning: "An input tensor does not match the model, or its data do not match its data type and shape.",
    text: "unexpected inference input 'x' for model 'm'",
    action: "Compare names, data types and shapes with the model's metadata.",
  },
  BATCH_TOO_LARGE: {
    code: "INVALID_ARG",
    meaning: "The request has more rows than the largest batch of the model.",
    text: "inference request batch-size must be <= 8 for 'm'",
    action: "Split the request, or raise `maxBatchSize` of the model.",
  },
  INVALID_REQUESTED_OUTPUT: {
    code: "INVALID_ARG",
    meaning:
      "The request names an output that the model does not have, or a form that the output cannot take.",
    text: "unexpected inference output 'y' for model 'm'",
    action: "Compare the names of outputs with the model's metadata, and check the parameters of the output.",
  },
  INVALID_PARAMETER: {
    code: "INVALID_ARG",
    meaning: "A parameter of the request has a reserved name, or a value of the wrong type or range.",
    text: "parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
    action: "Rename the parameter or correct its value.",
  },
  INVALID_BODY: {
    code: "INVALID_ARG",
    meaning: "The body of the request cannot be decoded: its encoding, header length or structure is wrong.",
    text: "request body is not valid gzip data",
    action: "Check the headers `Content-Encoding`, `Content-Length` and `Inference-Header-Content-Length`.",
  },
  REQUEST_TOO_LARGE: {
    code: "INVALID_ARG",
    meaning: "The request is larger than the server accepts, in bytes, values, tensors or fields.",
    text: "JSON input 'x' has a byte_size (...) that exceeds the maximum allowed value of ... bytes.",
    action: "Send smaller requests, or raise `maxInputSize` (`--http-max-input-size`).",
  },
  CONTEXT_LENGTH_EXCEEDED: {
    code: "INVALID_ARG",
    meaning: "The prompt of a text, with `max_tokens`, is longer than the context of the model.",
    text: "prompt of model 'm': expected at most 511 tokens, because the context has 512 tokens, got 600",
    action: "Send a shorter prompt or a smaller `max_tokens`.",
  },
  RESPONSE_TOO_LARGE: {
    code: "INVALID_ARG",
    meaning: "The response exceeds the largest size of a gRPC message.",
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
    action: "Give a version of at least 1, or none for the highest ready version.",
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
    action: "Correct the fields in the message. `tritonjs config check` finds such faults without a server.",
  },
  INVALID_MODEL: {
    code: "INVALID_ARG",
    meaning:
      "A file of the model cannot be loaded: it is damaged, has the wrong format, or its code is incomplete.",
    text: "cannot load the ONNX model '/models/m/1/model.onnx': ...",
    action: "Fix the file or export it again.",
  },
  INVALID_REPOSITORY: {
    code: "INVALID_ARG",
    meaning: "A model repository, its address, or its credentials are not valid.",
    text: "repository path /models is not a valid directory",
    action: "Correct the path or the credentials.",
  },
  LOAD_REQUEST_FAILED: {
    code: "INVALID_ARG",
    meaning: "A model could not be loaded at the start of the server or on request.",
    text: "load failed for model 'm': version 1 is at UNAVAILABLE state: ...",
    action: "Fix the fault in the message, then load the model again.",
  },
  INVALID_LOAD_REQUEST: {
    code: "INVALID_ARG",
    meaning: "A request to load or unload a model has an invalid name, configuration or file.",
    text: "invalid model name '../m', model name must not contain path traversal characters",
    action: "Correct the request.",
  },
  PATH_NOT_ALLOWED: {
    code: "INVALID_ARG",
    meaning: "A model names a file outside of its directory.",
    text: "data file: expected a path inside the model's directory /models/m, got '../x'",
    action: "Move the file into the directory of the model, and give its path relative to the directory.",
  },
  LOAD_PATH_NOT_ALLOWED: {
    code: "INVALID_ARG",
    meaning: "The configuration of a load request names a path, or an address, that a client may not choose.",
    text: "parameter 'library' of model 'm': expected an absolute path inside the model repository in a configuration that came over the network, got '/tmp/x.so'. Write it into the configuration in the repository, or start the server with '--allow-model-file-override=true'.",
    action:
      "Write the parameter into the configuration in the repository, or set `allowModelFileOverride: true` (`--allow-model-file-override=true`).",
  },
  WARMUP_FAILED: {
    code: "INVALID_ARG",
    meaning: "A warm-up sample is not valid, or the model failed when it ran the sample.",
    text: "failed to run warmup sample 'w': ...",
    action: "Fix the sample in `model_warmup`, or the model.",
  },
  INVALID_OPTION: {
    code: "INVALID_ARG",
    meaning: "An option of the library, a frontend or a client is not valid.",
    text: "requestMemory.byteSize: expected an integer of at least 1, got 0",
    action: "Correct the option.",
  },
  INVALID_ROLLOUT: {
    code: "INVALID_ARG",
    meaning:
      "A rollout cannot start or change as asked: an option, a version, or its state does not allow it.",
    text: "rollout of model 'm': version 3 is not in service: expected one of [1, 2]",
    action: "Correct the option. Load both versions first; they must have the same inputs and outputs.",
  },
  INVALID_SETTING: {
    code: "INVALID_ARG",
    meaning: "A request to change trace or log settings has an invalid value.",
    text: "Unable to parse 'trace_rate', got: x",
    action: "Correct the value.",
  },
  INVALID_METRIC: {
    code: "INVALID_ARG",
    meaning: "The name, kind, labels, buckets or value of a model's custom metric is invalid.",
    text: "invalid name of a metric '1x': ...",
    action: "Correct the metric in the model's code.",
  },
  INVALID_REGION: {
    code: "INVALID_ARG",
    meaning: "A shared memory region cannot be registered, or the request reaches beyond its bytes.",
    text: "Invalid offset + byte size for shared memory region: 'r'",
    action: "Check the key, the offset and the byte size.",
  },

  UNSUPPORTED: {
    code: "UNSUPPORTED",
    meaning: "The server, the client or the platform does not support the operation.",
    text: "'repository_name' specification is not supported",
    action: "Do not use the operation.",
  },
  DECOUPLED_MODEL: {
    code: "UNSUPPORTED",
    meaning:
      "The call takes exactly one response and the model is decoupled, or the call needs a decoupled model.",
    text: "HTTP end point doesn't support models with decoupled transaction policy",
    action: "Use a streaming call: `stream()`, gRPC `ModelStreamInfer`, or HTTP `generate_stream`.",
  },
  MODEL_NOT_SUPPORTED: {
    code: "UNSUPPORTED",
    meaning: "The model uses an operation, a data type or a file format that its runtime does not support.",
    text: "cannot serve the TensorFlow.js model '/models/m/1/model.json': ...",
    action: "Convert the model, or use another backend.",
  },
  PLATFORM_NOT_SUPPORTED: {
    code: "UNSUPPORTED",
    meaning: "The operating system does not support the feature.",
    text: "Shared memory feature is currently not supported on Windows",
    action: "Run the server on Linux or macOS.",
  },
  SHARED_MEMORY_DISABLED: {
    code: "UNSUPPORTED",
    meaning: "The server does not allow clients to register shared memory.",
    text: "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
    action:
      "Set `allowClientSharedMemory: true` (`--allow-client-shm=true`), or send tensors in the request.",
  },
  MODEL_FILES_DISABLED: {
    code: "UNSUPPORTED",
    meaning: "The server does not allow clients to send the files of a model.",
    text: "Files of load requests are disabled, got 1 for model 'm'. Start the server with '--allow-model-file-override=true' to enable.",
    action:
      "Put the files into the repository, or set `allowModelFileOverride: true` (`--allow-model-file-override=true`).",
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
    meaning: "The name is already in use, or a function that may run only once was called again.",
    text: "model 'm' is already bound by the program: rename one of them",
    action: "Choose another name, or remove the first one.",
  },
  ROLLOUT_EXISTS: {
    code: "ALREADY_EXISTS",
    meaning: "The model has a rollout that is not over.",
    text: "model 'm' has a rollout from version 1 to 2: promote it or roll it back first",
    action: "End the first rollout, or change its share.",
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
    action: "Nothing: the caller no longer waits for the answer.",
  },
  SEQUENCE_CANCELLED: {
    code: "CANCELLED",
    meaning: "Another request of the same sequence was cancelled, which ends the sequence.",
    text: "another request of the same sequence was cancelled, which ended the sequence",
    action: "Start the sequence again.",
  },
  CALLER_ENDED: {
    code: "CANCELLED",
    meaning: "A model called another model, and the request that made the call ended first.",
    text: "the call of model 'm' was cancelled: ...",
    action: "Await all calls of other models before the callback returns.",
  },
  CLIENT_CLOSED_MEANWHILE: {
    code: "CANCELLED",
    meaning: "The client was closed while the call was in flight.",
    text: "the client was closed",
    action: "Close the client after its last call has ended.",
  },

  UNKNOWN: {
    code: "UNKNOWN",
    meaning: "The failure has no other code.",
    text: "the message of the thrown error",
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

/** Statuses of a reason on both transports. */
export interface ReasonStatus {
  readonly http: number;
  readonly grpc: number;
}

/** Reasons with a status of their own. All others have the status of their code. */
const statuses: Partial<Record<ErrorReason, ReasonStatus>> = {
  UNAUTHENTICATED: { http: 401, grpc: 16 },
  PERMISSION_DENIED: { http: 403, grpc: 7 },
};

/** The statuses of a reason, if it has any that differ from those of its code. */
export function reasonStatus(reason: ErrorReason): ReasonStatus | undefined {
  return statuses[reason];
}
