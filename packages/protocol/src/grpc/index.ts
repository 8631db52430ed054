export { grpc, inference } from "#messages";
export {
  decodeMessage,
  decodePacked,
  eachField,
  encodeMessage,
  encodeParameter,
  FieldLimitError,
  type FieldVisitor,
  inferencePath,
  type MessageDecoder,
  type MessageEncoder,
  type ParameterScalar,
  RETRY_PUSHBACK,
  WireStrings,
} from "./codec.js";
export { type ContentsElements, ContentsError, typedElements } from "./typed-contents.js";
