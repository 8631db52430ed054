import type { Frontend } from "@tritonjs/core";
import { checkOptionNames, keyList, type TlsOptions } from "@tritonjs/core/frontend";
import { HTTP_LIMIT_KEYS, type HttpLimits, ListeningFrontend } from "@tritonjs/http/frontend";
import { requestFaultBody } from "./errors/error-answer.js";
import { OPENAI_OPTION_KEYS, type OpenAiEndpointOptions, openAiHandler } from "./openai-handler.js";

/** Options of {@link openai}: its address, and how the endpoints answer. */
export interface OpenAiOptions extends OpenAiEndpointOptions {
  /** Port to listen on; 9000 unless given. 0 takes any free port. */
  readonly port?: number;
  /** Address to listen on; `localhost` unless given. */
  readonly address?: string;
  /** Lets other processes listen on the port too, from Node 22.12 on; false unless given. */
  readonly reusePort?: boolean;
  /** Encrypts connections, and asks clients for certificates if it has a `ca`; no encryption unless given. */
  readonly tls?: TlsOptions;
  /** Limits on the size and the duration of requests. */
  readonly limits?: Partial<HttpLimits>;
}

const KEYS = [
  ...keyList<Omit<OpenAiOptions, keyof OpenAiEndpointOptions>>({
    port: true,
    address: true,
    reusePort: true,
    tls: true,
    limits: true,
  }),
  ...OPENAI_OPTION_KEYS,
];

/** Default of the option `port`, that of Triton's OpenAI frontend. */
const PORT = 9000;

/**
 * The OpenAI endpoints on a port of their own: chat completions, completions, responses, embeddings and models, over
 * all models of the server that take and return text or embeddings.
 *
 * @throws TritonError INVALID_ARG for an unknown option or a wrong value.
 * @example
 * ```ts
 * await triton.serve({ frontends: [http(), openai({ port: 9000, apiKeys: [process.env.OPENAI_KEY] })] });
 * ```
 */
export function openai(options: OpenAiOptions = {}): Frontend {
  checkOptionNames("openai()", options, KEYS);
  checkOptionNames("openai({ limits })", options.limits ?? {}, HTTP_LIMIT_KEYS);
  const { port = PORT, address = "localhost", reusePort = false, tls, limits, ...endpoints } = options;
  return new ListeningFrontend(
    {
      name: "openai",
      port,
      address,
      reusePort,
      portHint: "openai({ port })",
      clientErrorBody: requestFaultBody,
      ...(tls && { tls }),
      ...(limits && { limits }),
    },
    (service) => openAiHandler(service, endpoints),
  );
}
