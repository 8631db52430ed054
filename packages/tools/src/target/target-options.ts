import type { Compression } from "@tritonjs/client/http";
import type { Triton } from "@tritonjs/core";
import type { ParameterValue } from "@tritonjs/protocol";
import type { TlsSettings } from "./endpoint.js";

/** What all targets of the v2 protocol have in common. */
export interface InferTargetOptions {
  readonly modelName: string;
  /** @default the version that the server chooses */
  readonly modelVersion?: string;
  /** Custom parameters of each request. */
  readonly parameters?: Readonly<Record<string, ParameterValue>>;
}

/** A server of the v2 protocol over a network. */
export interface RemoteTargetOptions extends InferTargetOptions {
  /** `host:port`, or with a scheme. */
  readonly url: string;
  /** Headers, or metadata, of each request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Uses TLS. An address with `https://` does so without it. */
  readonly tls?: TlsSettings;
  /** Where tensors lie: in requests, or in regions of shared memory of this machine. @default "none" */
  readonly sharedMemory?: "none" | "system";
  /** Bytes of shared memory for each output. @default 102400 */
  readonly outputSharedMemorySize?: number;
}

/** A server of the v2 protocol over HTTP. */
export interface HttpTargetOptions extends RemoteTargetOptions {
  readonly kind: "http";
  /** Form of tensors in requests. @default "binary" */
  readonly inputTensorFormat?: "binary" | "json";
  /** Form of tensors in responses. @default "binary" */
  readonly outputTensorFormat?: "binary" | "json";
  readonly requestCompression?: Compression;
  readonly responseCompression?: Compression;
}

/** A server of the v2 protocol over gRPC. */
export interface GrpcTargetOptions extends RemoteTargetOptions {
  readonly kind: "grpc";
  /** Sends requests on streams. Decoupled models need it. @default false */
  readonly streaming?: boolean;
  readonly compression?: Compression;
}

/** A model in this process. */
export interface InProcessTargetOptions extends InferTargetOptions {
  readonly kind: "in-process";
  readonly source: { readonly triton: Triton };
}

/** An endpoint of OpenAI's API. */
export interface OpenAiTargetOptions {
  readonly kind: "openai";
  /** `http://host:port`; the endpoint is appended. */
  readonly url: string;
  /** `v1/chat/completions`, `v1/completions` or `v1/embeddings`. @default "v1/chat/completions" */
  readonly endpoint?: string;
  /** Sets `stream` in each request. @default false */
  readonly streaming?: boolean;
  /** Name for `model` in bodies that have none. */
  readonly modelName?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls?: TlsSettings;
}

/** Where requests go. */
export type TargetOptions =
  | HttpTargetOptions
  | GrpcTargetOptions
  | InProcessTargetOptions
  | OpenAiTargetOptions;
