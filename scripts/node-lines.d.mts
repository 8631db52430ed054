/** The supported lines of Node. */
export const LINES: readonly string[];
/** Path of the newest Node of a line. */
export function nodeBinary(line: string): string;
/** Path of a file of a package. */
export function fromNpm(cache: string, specifiers: string, path: string): string;
