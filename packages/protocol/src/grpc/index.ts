export { descriptors } from "#descriptors";
export { grpc, inference } from "#messages";
export {
  ContentsError,
  decodeMessage,
  decodePacked,
  eachField,
  encodeMessage,
  encodeParameter,
  FieldLimitError,
  inferencePath,
  type MessageDecoder,
  type MessageEncoder,
  RETRY_PUSHBACK,
  type RpcRequest,
  type RpcResponse,
  typedElements,
  type UnaryRpcName,
  unaryRpc,
  WireStrings,
} from "./codec.js";
