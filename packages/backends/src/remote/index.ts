import type { BackendFactory } from "@tritonjs/core/backend";
import { remoteBackend } from "./remote-backend.js";

/*
 * `@tritonjs/backends/remote`: models of other servers as models of this one. Only this part of the package needs
 * `@tritonjs/core`.
 */

export type { Fetch } from "@tritonjs/client/http";
export type { Lookup } from "@tritonjs/client/internal";
export { type RemoteModel, remote } from "./remote-backend.js";
export type { RemoteOptions, RemoteProtocol } from "./replica-client.js";

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = { remote: remoteBackend };
