export { grpc, inference } from "#messages";
export { decodeMessage, encodeMessage, type MessageDecoder, type MessageEncoder } from "./codec.js";
export { eachField, type FieldVisitor } from "./each-field.js";
export { inferencePath } from "./inference-path.js";
export { FieldLimitError } from "./message-reader.js";
export { encodeParameter, type ParameterScalar } from "./parameter.js";
export { RETRY_PUSHBACK } from "./retry-pushback.js";
export { type ContentsElements, ContentsError, typedElements } from "./typed-contents.js";
