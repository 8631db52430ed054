import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { authorityOf, endpointOf } from "./endpoint.js";
import type { GrpcTargetOptions, HttpTargetOptions } from "./target-options.js";
import { tlsFetch } from "./tls-fetch.js";

/** Asks the server of a target about its models, beside the load. Close it after use. */
export function httpClientOf({ url, headers, tls }: HttpTargetOptions): HttpClient {
  const endpoint = httpEndpoint({ url, tls });
  const scheme = endpoint.tls === undefined ? "http" : "https";
  const fetch = tls === undefined ? undefined : tlsFetch(tls);
  return new HttpClient(`${scheme}://${authorityOf(endpoint)}${endpoint.basePath}`, { headers, fetch });
}

/** As {@link httpClientOf}, over gRPC. */
export function grpcClientOf({ url, headers, tls }: GrpcTargetOptions): GrpcClient {
  const endpoint = grpcEndpoint({ url, tls });
  const { ca, cert, key } = tls ?? {};
  const secure = endpoint.tls === undefined ? false : tls === undefined ? true : { ca, cert, key };
  return new GrpcClient(authorityOf(endpoint), { headers, tls: secure });
}

export const httpEndpoint = ({ url, tls }: Pick<HttpTargetOptions, "url" | "tls">) =>
  endpointOf(url, { defaultPort: 8000, schemes: ["http", "https"], tls });

export const grpcEndpoint = ({ url, tls }: Pick<GrpcTargetOptions, "url" | "tls">) =>
  endpointOf(url, { defaultPort: 8001, schemes: ["grpc", "grpcs", "http", "https"], tls });
