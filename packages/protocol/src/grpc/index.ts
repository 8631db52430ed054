export { grpc, inference } from "#messages";
export {
  type ContentsElements,
  ContentsError,
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
  typedElements,
  WireStrings,
} from "./codec.js";
