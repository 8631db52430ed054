/*
 * `@tritonjs/client/remote`: models of other servers as models of this one. Only this part of the package needs
 * `@tritonjs/core`.
 */
import type { BackendFactory } from "@tritonjs/core/backend";
import { remoteBackend } from "./repository-backend.js";

export type { Fetch } from "../http/client-options.js";
export type { Lookup } from "../options/client-options.js";
export { type RemoteModel, remote } from "./remote.js";
export type { RemoteOptions, RemoteProtocol } from "./remote-options.js";

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = { remote: remoteBackend };
