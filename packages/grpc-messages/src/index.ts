export { grpc, inference } from "#messages";
export {
  decodeMessage,
  decodePacked,
  encodeMessage,
  encodeParameter,
  type MessageDecoder,
  type MessageEncoder,
  type ParameterScalar,
} from "./codec.js";
export { eachField, type FieldVisitor } from "./each-field.js";
export { inferencePath, RETRY_PUSHBACK } from "./grpc-names.js";
export { FieldLimitError } from "./message-reader.js";
export { type ContentsElements, ContentsError, typedElements } from "./typed-contents.js";
export { WireStrings } from "./wire-strings.js";
