/** Inputs are listed in the order of a hash map: a text with a list of them is compared as if it were sorted. */
export function levelNames(text: string): string {
  return text.replace(
    /(Got input\(s\)|missing required input\(s\)) \[([^\]]*)\]/g,
    (_, what: string, names: string) => `${what} [${names.split(",").sort().join(",")}]`,
  );
}
