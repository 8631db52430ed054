/*
 * The parts of fastify that this package uses. An application that mounts the plugin or logs requests has fastify. In
 * any other application the declarations of this package must compile without it: there these types are `any`.
 */

// biome-ignore lint/suspicious/noTsIgnore: in this repository there is no error to expect.
/** @ts-ignore fastify may not be installed. */
export type {
  FastifyInstance,
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  FastifyServerOptions,
} from "fastify";
