/*
 * Models on other servers as models of this one. The only part of the package that needs `@tritonjs/core`.
 */
import type { BackendFactory } from "@tritonjs/core/backend";
import { remoteBackend } from "./repository-backend.js";

export type { Fetch } from "../http/client-options.js";
export type { Lookup } from "../options/client-options.js";
export { type RemoteModel, remote } from "./remote.js";
export type { RemoteOptions, RemoteProtocol } from "./remote-options.js";

/** The backends that a `config.pbtxt` can name, for core. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = { remote: remoteBackend };
