import {
  type CallOptions,
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  type ClientUnaryCall,
  credentials,
  Metadata,
  type ServiceError,
} from "@grpc/grpc-js";
import {
  decodeMessage,
  encodeMessage,
  inference,
  type MessageDecoder,
  type MessageEncoder,
} from "@tritonjs/protocol/grpc";

const MESSAGE_SIZE = { "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 };

/** Additional options of a call. */
export interface CallExtras {
  readonly headers?: readonly (readonly [string, string])[];
  readonly options?: Partial<CallOptions>;
  /** Receives the call, for cancelling it. */
  readonly started?: (call: ClientUnaryCall) => void;
}

type Messages = typeof inference;
/** Methods of the service whose messages are named after them. */
type Method = keyof { [K in keyof Messages as K extends `${infer N}Request` ? N : never]: K };
type RequestOf<N extends Method> = Messages[`${N}Request`] extends MessageEncoder<infer Q> ? Q : never;
type ResponseOf<N extends Method> =
  Messages[`${N}Response` & keyof Messages] extends MessageDecoder<infer R> ? R : never;

/** A client that calls methods by name. */
export class GrpcClient extends Client {
  constructor(url: string, security: ChannelCredentials = credentials.createInsecure()) {
    super(url, security, MESSAGE_SIZE);
  }

  /** Calls a unary method; rejects with grpc-js' error, which has `code` and `details`. */
  call<Q, R>(
    path: string,
    request: MessageEncoder<Q>,
    response: MessageDecoder<R>,
    message: Q,
    { headers = [], options = {}, started }: CallExtras = {},
  ): Promise<R> {
    return new Promise((resolve, reject) => {
      const call = this.makeUnaryRequest(
        path.startsWith("/") ? path : `/inference.GRPCInferenceService/${path}`,
        (value: Q) => encodeMessage(request, value),
        (bytes) => decodeMessage(response, bytes),
        message,
        metadata(headers),
        options,
        (error: ServiceError | null, value?: R) => (error === null ? resolve(value!) : reject(error)),
      );
      started?.(call);
    });
  }

  /** Calls a unary method of the inference service. */
  ask<N extends Method>(name: N, message: RequestOf<N>, extras?: CallExtras): Promise<ResponseOf<N>> {
    const codecs = inference as unknown as Readonly<Record<string, unknown>>;
    const request = codecs[`${name}Request`] as MessageEncoder<RequestOf<N>>;
    const response = codecs[`${name}Response`] as MessageDecoder<ResponseOf<N>>;
    return this.call(name, request, response, message, extras);
  }

  infer(message: inference.ModelInferRequest.$Properties, extras?: CallExtras) {
    return this.call(
      "ModelInfer",
      inference.ModelInferRequest,
      inference.ModelInferResponse,
      message,
      extras,
    );
  }

  stream(
    headers: readonly (readonly [string, string])[] = [],
    options: Partial<CallOptions> = {},
  ): ClientDuplexStream<
    inference.ModelInferRequest.$Properties,
    inference.ModelStreamInferResponse & inference.ModelStreamInferResponse.$Shape
  > {
    return this.makeBidiStreamRequest(
      "/inference.GRPCInferenceService/ModelStreamInfer",
      (value: inference.ModelInferRequest.$Properties) => encodeMessage(inference.ModelInferRequest, value),
      (bytes) => decodeMessage(inference.ModelStreamInferResponse, bytes),
      metadata(headers),
      options,
    );
  }
}

function metadata(headers: readonly (readonly [string, string])[]): Metadata {
  const made = new Metadata();
  for (const [name, value] of headers) made.add(name, value);
  return made;
}
