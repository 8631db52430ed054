import type { TritonOptions } from "@tritonjs/core";
import { type RepositoryOptions, repository } from "@tritonjs/repository";
import { REPOSITORY_OPTION_TYPES } from "../../packages/repository/src/repository-options.js";

/** Options of a server and of its repository in one object, for helpers that pass on either. */
export type ServedOptions = TritonOptions & RepositoryOptions;

/** The options of a server with a repository; without options of a repository, it has none. */
export function servedOptions(options: ServedOptions): TritonOptions {
  const isOfRepository = (key: string) => Object.hasOwn(REPOSITORY_OPTION_TYPES, key);
  const entries = Object.entries(options);
  const own = entries.filter(([key]) => isOfRepository(key));
  const rest: TritonOptions = Object.fromEntries(entries.filter(([key]) => !isOfRepository(key)));
  if (own.length === 0) return rest;
  return { ...rest, extensions: [repository(Object.fromEntries(own)), ...(rest.extensions ?? [])] };
}
