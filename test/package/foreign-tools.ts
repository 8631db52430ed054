import { fromNpm, nodeBinary, RUNTIMES, runtimeArguments, runtimeBinary } from "../../scripts/node-lines.mjs";

/** A program that npm brings to a machine that reaches a registry. */
export interface ForeignTool {
  /** Its path; undefined if it cannot be installed here. */
  readonly path: string | undefined;
  /** End of a test's name, with the reason if the test is skipped. */
  readonly note: string;
}

/** The newest Node of a line. */
export function nodeOfLine(line: string): ForeignTool {
  return tool(`Node ${line}`, () => nodeBinary(line));
}

/** A runtime other than Node, with the arguments that it takes before a module. */
export function otherRuntime(
  runtime: keyof typeof RUNTIMES,
): ForeignTool & { readonly args: readonly string[] } {
  const found = tool(`${runtime} ${RUNTIMES[runtime]}`, () => runtimeBinary(runtime));
  return { ...found, args: runtimeArguments(runtime) };
}

/**
 * A file of a package.
 *
 * @param name name for people
 * @param cache folder of its versions in the cache of the repository
 * @param specifiers packages with their versions, separated by spaces
 * @param path path in `node_modules`
 */
export function npmTool(name: string, cache: string, specifiers: string, path: string): ForeignTool {
  return tool(name, () => fromNpm(cache, specifiers, path));
}

function tool(name: string, find: () => string): ForeignTool {
  try {
    return { path: find(), note: "" };
  } catch {
    return { path: undefined, note: ` (skipped: npm cannot install ${name} here)` };
  }
}
