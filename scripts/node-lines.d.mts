/** The supported lines of Node. */
export const LINES: readonly string[];
/** Path of the newest Node of a line. */
export function nodeBinary(line: string): string;
/** Path of a file of a package. */
export function fromNpm(cache: string, specifiers: string, path: string): string;

/** Other runtimes on which tests run, with their versions. */
export const RUNTIMES: Readonly<Record<"bun" | "deno", string>>;
/** Path of the program of a runtime, which npm brings. */
export function runtimeBinary(runtime: "bun" | "deno"): string;
/** Arguments that a runtime takes before the name of a module. */
export function runtimeArguments(runtime: "bun" | "deno"): readonly string[];
