/**
 * The place of an error in the user's source, as `file:line:column`; undefined if its stack has none. The stack of a
 * syntax error begins with the file and the line, and a mark below the source shows the column:
 *
 * ```
 * file:///app/model.js:3
 *   const a = ;
 *             ^
 * ```
 */
export function placeInSource(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.stack === undefined) return undefined;
  const lines = error.stack.split("\n");
  if (error instanceof SyntaxError) {
    const [first = ""] = lines;
    if (!/:\d+$/.test(first)) return undefined;
    const mark = lines.findIndex((line) => /^\s*\^+\s*$/.test(line));
    return mark < 0 ? first : `${first}:${lines[mark]!.indexOf("^") + 1}`;
  }
  for (const line of lines) {
    const place = /^ {4}at (?:.*\()?((?:file:\/\/)?\/?.+:\d+:\d+)\)?$/.exec(line)?.[1];
    if (place !== undefined && !place.startsWith("node:")) return place;
  }
  return undefined;
}
