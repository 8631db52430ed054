import { METHODS } from "node:http";
import type { Frontend } from "@tritonjs/core";
import type { FastifyInstance, FastifyServerOptions } from "fastify";
import { ListeningFrontend } from "./listening-frontend.js";
import { leaveBodies, type V2PluginOptions, v2Handler, v2Plugin } from "./v2-plugin.js";

/** Options of {@link http}: where it listens, and those of the plugin. */
export interface HttpOptions extends Omit<V2PluginOptions, "service"> {
  /** 8000 unless given; 0 takes any free port. */
  readonly port?: number;
  /** Address to listen on; `localhost` unless given. */
  readonly address?: string;
  /** fastify's logger options; no logging unless given. */
  readonly logger?: FastifyServerOptions["logger"];
}

/**
 * The v2 protocol on a port of its own.
 *
 * @example
 * ```ts
 * await triton.serve({ frontends: [http({ port: 8000 })] });
 * ```
 */
export function http(options: HttpOptions = {}): Frontend {
  const { port = 8000, address = "localhost", logger, ...v2 } = options;
  const portHint = "the option httpPort (or http({ port }))";
  return new ListeningFrontend(
    { name: "http", port, address, portHint, logger },
    (app, service) => {
      supportAllMethods(app);
      leaveBodies(app);
      app.register(v2Plugin, { ...v2, service });
      app.setNotFoundHandler(v2Handler({ ...v2, service }));
    },
    // A path that fastify cannot decode is one like any other to Triton.
    (service) => {
      const handler = v2Handler({ ...v2, service });
      return { frameworkErrors: (_error, request, reply) => void handler(request, reply) };
    },
  );
}

/** Lets every method that Node can parse reach the routes, which answer 405. */
function supportAllMethods(app: FastifyInstance): void {
  for (const method of METHODS) {
    if (method !== "CONNECT" && !app.supportedMethods.includes(method)) app.addHttpMethod(method);
  }
}
