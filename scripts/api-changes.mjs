/** Levels of a changeset, from the lowest. */
const LEVELS = ["patch", "minor", "major"];

/** What a change of an export needs, by whether the version is below 1.0. */
const NEEDED = {
  removed: { before1: "minor", from1: "major" },
  changed: { before1: "minor", from1: "major" },
  extended: { before1: "patch", from1: "minor" },
  added: { before1: "patch", from1: "minor" },
};

/**
 * Differences between two API reports of a package, sorted by entry point.
 *
 * An export is `extended` if all its lines remain and the further lines are optional members, or members of a class.
 * Every other difference of its text is `changed`, such as a further member of a union: a program may not compile any more.
 *
 * @param before the older `api-report.md`; an empty text for a new package
 * @param after the newer one; an empty text for a removed package
 */
export function apiChanges(before, after) {
  const [old, now] = [exportsOf(before), exportsOf(after)];
  const changes = [];
  for (const [name, text] of old) {
    const newer = now.get(name);
    if (newer === undefined) changes.push({ kind: "removed", name });
    else if (newer !== text) changes.push({ kind: isExtended(text, newer) ? "extended" : "changed", name });
  }
  for (const name of now.keys()) if (!old.has(name)) changes.push({ kind: "added", name });
  return changes;
}

/** The lowest level of a changeset that a change may have in a package of some version. */
export function neededLevel(kind, version) {
  return NEEDED[kind][Number(version.split(".")[0]) === 0 ? "before1" : "from1"];
}

/** Whether a level, `undefined` for none, is at least as high as another one. */
export function reaches(level, needed) {
  return LEVELS.indexOf(level) >= LEVELS.indexOf(needed);
}

/** The higher one of two levels, each of which may be `undefined`. */
export function higher(a, b) {
  return reaches(a, b) ? a : b;
}

/** The level by which a version was raised; `undefined` for the same version. */
export function levelBetween(before, after) {
  const [old, now] = [before.split("."), after.split(".")];
  return ["major", "minor", "patch"].find((_, i) => old[i] !== now[i]);
}

/** Texts of the exports by entry point and name: `@tritonjs/http/fetch: fetchHandler`. Overloads are one text. */
function exportsOf(report) {
  const exports = new Map();
  const sections = report.matchAll(/^## `([^`]+)`\n\n```ts\n(.*?)\n```$/gms);
  for (const [, entry, code] of sections) {
    for (const text of code.split(/^(?=export )/m)) {
      const [, name] =
        /^export (?:(?:declare|abstract|default|async) )*(?:\w+ |\{ )?([\w$]+|\*.*)/.exec(text) ?? [];
      if (name === undefined) continue;
      const key = `${entry}: ${name}`;
      const earlier = exports.get(key);
      exports.set(key, earlier === undefined ? text.trim() : `${earlier}\n${text.trim()}`);
    }
  }
  return exports;
}

function isExtended(before, after) {
  const isClass = /^export (?:declare |abstract )*class /.test(before);
  const rest = before.split("\n");
  for (const line of after.split("\n")) {
    if (line === rest[0]) rest.shift();
    else if (isClass ? /^ {4}(?:protected )?abstract /.test(line) : !isOptional(line)) return false;
  }
  return rest.length === 0;
}

/** A blank line, or a whole optional member. */
function isOptional(line) {
  return /^\s*$|^\s+(?:readonly )?(?:[\w$]+|"[^"]+"|\[[^\]]+\])\?[:(].*;$/.test(line);
}
