import {
  compare,
  contains,
  type Dict,
  isCallable,
  isDict,
  isEqual,
  isInt,
  isNumber,
  isNumeric,
  isTrue,
  iterated,
  joinTexts,
  jsonOf,
  Lazy,
  Members,
  printed,
  TemplateFault,
  type TemplateFunction,
  Tuple,
  toNumber,
  typeName,
  type Value,
} from "./python-values.js";
import { countBytes, countSearch, countSteps } from "./render-budget.js";

type Args = readonly Value[];
type Named = ReadonlyMap<string, Value>;

/** An argument by its place or its name. */
function argument<T = Value>(args: Args, named: Named, index: number, name: string, otherwise?: T): T {
  const value = args[index] ?? named.get(name);
  if (value === undefined) return otherwise as T;
  return value as T;
}

/** An argument that is a number. */
function numberArgument(args: Args, named: Named, index: number, name: string, otherwise: number): number {
  return toNumber(argument<Value>(args, named, index, name, otherwise));
}

/** White space of Python that `\s` does not have. */
const FURTHER_SPACE: ReadonlySet<number> = new Set([0x1c, 0x1d, 0x1e, 0x1f, 0x85]);

function isSpace(one: string): boolean {
  return /\s/.test(one) || FURTHER_SPACE.has(one.charCodeAt(0));
}

function stripped(given: string, characters: Value, atStart: boolean, atEnd: boolean): string {
  // Most of what there is to remove, at the speed of the engine.
  const own = typeof characters !== "string";
  const begun = own && atStart ? given.trimStart() : given;
  const text = own && atEnd ? begun.trimEnd() : begun;
  const set = typeof characters === "string" ? new Set(characters) : undefined;
  const drops = (one: string) => set?.has(one) ?? isSpace(one);
  let start = 0;
  let end = text.length;
  const isPair = (at: number) => at >= start && at < end - 1 && text.codePointAt(at)! > 0xffff;
  while (atStart && start < end) {
    const length = isPair(start) ? 2 : 1;
    if (!drops(text.slice(start, start + length))) break;
    start += length;
  }
  while (atEnd && end > start) {
    const length = isPair(end - 2) ? 2 : 1;
    if (!drops(text.slice(end - length, end))) break;
    end -= length;
  }
  // The longer of the two sides, of which each character was looked at.
  countSteps((text.length - (end - start)) / 2);
  return text.slice(start, end);
}

function split(text: string, separator: Value, most: number, fromEnd: boolean): string[] {
  if (separator === undefined || separator === null) return splitWords(text, most, fromEnd);
  if (separator === "") throw new TemplateFault("empty separator");
  const by = printed(separator);
  const parts = splitBy(text, by);
  if (!(most >= 0) || parts.length <= most + 1) return parts;
  return fromEnd
    ? [parts.slice(0, parts.length - most).join(by), ...parts.slice(parts.length - most)]
    : [...parts.slice(0, most), parts.slice(most).join(by)];
}

function splitWords(text: string, most: number, fromEnd: boolean): string[] {
  const trimmed = text.trim();
  countBytes(8 * trimmed.length);
  const words = trimmed === "" ? [] : trimmed.split(/\s+/);
  if (!(most >= 0) || words.length <= most + 1) return words;
  const kept = fromEnd ? words.slice(words.length - most) : words.slice(0, most);
  let rest = fromEnd ? text.trimEnd() : text.trimStart();
  for (const word of fromEnd ? kept.toReversed() : kept) {
    rest = fromEnd ? rest.slice(0, -word.length).trimEnd() : rest.slice(word.length).trimStart();
  }
  return fromEnd ? [rest, ...kept] : [...kept, rest];
}

function splitBy(text: string, part: string): string[] {
  countSearch(text, part);
  countBytes(8 * (1 + text.length / Math.max(1, part.length)));
  return text.split(part);
}

function countOf(text: string, part: string): number {
  if (part === "") return iterated(text).length + 1;
  countSearch(text, part);
  let count = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) count++;
  countSteps(count / 4);
  return count;
}

function replaced(text: string, from: string, to: string, most: number): string {
  const places = countOf(text, from);
  if (from === "" || (most >= 0 && most < places)) {
    const parts = from === "" ? ["", ...iterated(text).map(String), ""] : splitBy(text, from);
    const kept = most >= 0 ? most : places;
    return joinTexts([...parts.slice(0, kept), parts.slice(kept).join(from)], to);
  }
  countBytes(text.length + places * (to.length - from.length));
  return text.replaceAll(from, () => to);
}

function hasEnd(text: string, ends: Value, test: (text: string, end: string) => boolean): boolean {
  return (Array.isArray(ends) ? ends : [ends]).some((end) => {
    const part = printed(end);
    countSteps(1 + part.length / 64);
    return test(text, part);
  });
}

function titled(text: string): string {
  countSteps(text.length / 8);
  return text.replace(/\p{L}+/gu, (word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase());
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1).toLowerCase();
}

/** Counts a text that becomes a part of another one. */
function counted(text: string): string {
  countBytes(text.length);
  return text;
}

/** Fills a text up to a width. */
function padded(text: string, width: Value, fill: Value, atStart: boolean): string {
  const length = toNumber(width);
  if (!(length > text.length)) return text;
  countBytes(length);
  return atStart ? text.padStart(length, printed(fill)) : text.padEnd(length, printed(fill));
}

function formatted(text: string, args: Args, named: Named): string {
  let next = 0;
  return text.replace(/\{\{|\}\}|\{(\w*)(![rs])?(:[^{}]*)?\}/g, (whole, name: string, _, spec?: string) => {
    if (whole === "{{" || whole === "}}") return whole.charAt(0);
    const value = name === "" ? args[next++] : /^\d+$/.test(name) ? args[Number(name)] : named.get(name);
    const digits = /^:\.(\d+)f$/.exec(spec ?? "");
    if (digits !== null) return toNumber(value).toFixed(Math.min(100, Number(digits[1])));
    return counted(printed(value));
  });
}

/** Methods of texts. */
const TEXT_METHODS: Readonly<Record<string, (text: string, args: Args, named: Named) => Value>> = {
  capitalize: capitalized,
  casefold: (text) => text.toLowerCase(),
  count: (text, [part]) => countOf(text, printed(part)),
  endswith: (text, [ends]) => hasEnd(text, ends, (one, end) => one.endsWith(end)),
  find: (text, [part]) => indexIn(text, part),
  format: formatted,
  index: (text, [part]) => {
    const at = indexIn(text, part);
    if (at < 0) throw new TemplateFault("substring not found");
    return at;
  },
  isalnum: (text) => /^[\p{L}\p{N}]+$/u.test(text),
  isalpha: (text) => /^\p{L}+$/u.test(text),
  isdigit: (text) => /^\p{Nd}+$/u.test(text),
  islower: (text) => text !== text.toUpperCase() && text === text.toLowerCase(),
  isnumeric: (text) => /^\p{N}+$/u.test(text),
  isspace: (text) => text !== "" && text.trim() === "",
  isupper: (text) => text !== text.toLowerCase() && text === text.toUpperCase(),
  join: (text, [items]) => joinTexts(Array.from(iterated(items), printed), text),
  ljust: (text, [width, fill = " "]) => padded(text, width, fill, false),
  lower: (text) => text.toLowerCase(),
  lstrip: (text, [characters]) => stripped(text, characters, true, false),
  partition: (text, [separator]) => partitioned(text, printed(separator), indexIn(text, separator), false),
  removeprefix: (text, [part]) => (hasStart(text, part) ? text.slice(printed(part).length) : text),
  removesuffix: (text, [part]) =>
    part !== "" && hasEnd(text, [part], (one, end) => one.endsWith(end))
      ? text.slice(0, text.length - printed(part).length)
      : text,
  replace: (text, [from, to, most = -1]) => replaced(text, printed(from), printed(to), toNumber(most)),
  rfind: (text, [part]) => indexIn(text, part, true),
  rjust: (text, [width, fill = " "]) => padded(text, width, fill, true),
  rpartition: (text, [separator]) =>
    partitioned(text, printed(separator), indexIn(text, separator, true), true),
  rsplit: (text, args, named) =>
    split(text, argument(args, named, 0, "sep"), numberArgument(args, named, 1, "maxsplit", -1), true),
  rstrip: (text, [characters]) => stripped(text, characters, false, true),
  split: (text, args, named) =>
    split(text, argument(args, named, 0, "sep"), numberArgument(args, named, 1, "maxsplit", -1), false),
  splitlines: (text, [keeps]) => {
    countBytes(8 * text.length);
    const lines = text.match(/[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g) ?? [];
    return isTrue(keeps) ? [...lines] : lines.map((line) => line.replace(/[\r\n]+$/, ""));
  },
  startswith: (text, [ends]) => hasStart(text, ends),
  strip: (text, [characters]) => stripped(text, characters, true, true),
  swapcase: (text) =>
    iterated(text)
      .map((one) => {
        const letter = one as string;
        return letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
      })
      .join(""),
  title: titled,
  upper: (text) => text.toUpperCase(),
  zfill: (text, [width]) => padded(text, width, "0", true),
};

function hasStart(text: string, starts: Value): boolean {
  return hasEnd(text, starts, (one, start) => one.startsWith(start));
}

function indexIn(text: string, value: Value, fromEnd = false): number {
  const part = printed(value);
  countSearch(text, part);
  return fromEnd ? text.lastIndexOf(part) : text.indexOf(part);
}

function partitioned(text: string, separator: string, at: number, fromEnd: boolean): Tuple {
  if (at < 0) return fromEnd ? Tuple.of("", "", text) : Tuple.of(text, "", "");
  return Tuple.of(text.slice(0, at), separator, text.slice(at + separator.length));
}

const DICT_METHODS: Readonly<Record<string, (dict: Dict, args: Args) => Value>> = {
  copy: (dict) => new Map(dict),
  get: (dict, [key, otherwise = null]) => (dict.has(key) ? dict.get(key) : otherwise),
  items: itemsOf,
  keys: (dict) => [...dict.keys()],
  values: (dict) => [...dict.values()],
};

const LIST_METHODS: Readonly<Record<string, (list: readonly Value[], args: Args) => Value>> = {
  copy: (list) => [...list],
  count: (list, [value]) => list.filter((one) => isEqual(one, value)).length,
  index: (list, [value]) => {
    const at = list.findIndex((one) => isEqual(one, value));
    if (at < 0) throw new TemplateFault(`${printed(value)} is not in list`);
    return at;
  },
};

/** Methods that change a value. The environment of transformers does not allow them. */
const UNSAFE = new Set([
  "append",
  "clear",
  "extend",
  "insert",
  "pop",
  "popitem",
  "remove",
  "reverse",
  "setdefault",
  "sort",
  "update",
]);

function itemsOf(dict: Dict): Tuple[] {
  countBytes(32 * dict.size);
  return [...dict].map(([key, value]) => Tuple.of(key, value) as Tuple);
}

/** Counts a pass through a text, a list or a dict that makes another one of the same size. */
function countPass(value: Value): void {
  const isText = typeof value === "string";
  const size = isText || Array.isArray(value) ? value.length : isDict(value) ? value.size : 0;
  countBytes(isText ? size : 8 * size);
  countSteps(isText ? 1 + size / 16 : 1 + size);
}

/** A method of a value by its name; undefined if it has none. */
export function methodOf(value: Value, name: string): TemplateFunction | undefined {
  const bound = <T>(table: Readonly<Record<string, (one: T, args: Args, named: Named) => Value>>, one: T) => {
    const method = Object.hasOwn(table, name) ? table[name] : undefined;
    if (method === undefined) return undefined;
    return (args: Args, named: Named) => {
      countPass(one);
      return method(one, args, named);
    };
  };
  if (typeof value === "string") return bound(TEXT_METHODS, value);
  if ((isDict(value) || Array.isArray(value)) && UNSAFE.has(name)) {
    throw new TemplateFault(`access to attribute '${name}' of '${typeName(value)}' object is unsafe.`);
  }
  if (isDict(value)) return bound(DICT_METHODS, value);
  return Array.isArray(value) ? bound(LIST_METHODS, value) : undefined;
}

/** Reads `a.b.0` of a value, as filters that take the name of an attribute do. */
function attributeOf(value: Value, path: Value): Value {
  return splitBy(printed(path), ".").reduce<Value>((one, key) => {
    if (isDict(one)) return one.get(key);
    if (one instanceof Members) return one.values.get(key);
    return Array.isArray(one) ? one[Number(key)] : undefined;
  }, value);
}

const TESTS: Readonly<Record<string, (value: Value, args: Args) => boolean>> = {
  "!=": (value, [other]) => !isEqual(value, other),
  "<": (value, [other]) => compare(value, other) < 0,
  "<=": (value, [other]) => compare(value, other) <= 0,
  "==": (value, [other]) => isEqual(value, other),
  ">": (value, [other]) => compare(value, other) > 0,
  ">=": (value, [other]) => compare(value, other) >= 0,
  boolean: (value) => typeof value === "boolean",
  callable: isCallable,
  defined: (value) => value !== undefined,
  divisibleby: (value, [other]) => toNumber(value) % toNumber(other) === 0,
  eq: (value, [other]) => isEqual(value, other),
  equalto: (value, [other]) => isEqual(value, other),
  even: (value) => toNumber(value) % 2 === 0,
  false: (value) => value === false,
  float: (value) => isNumber(value) && !isInt(value),
  ge: (value, [other]) => compare(value, other) >= 0,
  gt: (value, [other]) => compare(value, other) > 0,
  in: (value, [container]) => contains(container, value),
  integer: isInt,
  iterable: (value) =>
    value === undefined || typeof value === "string" || Array.isArray(value) || isDict(value),
  le: (value, [other]) => compare(value, other) <= 0,
  lower: (value) => printed(value) === printed(value).toLowerCase(),
  lt: (value, [other]) => compare(value, other) < 0,
  mapping: isDict,
  ne: (value, [other]) => !isEqual(value, other),
  none: (value) => value === null,
  number: isNumeric,
  odd: (value) => Math.abs(toNumber(value) % 2) === 1,
  sameas: (value, [other]) => value === other,
  sequence: (value) =>
    value === undefined || typeof value === "string" || Array.isArray(value) || isDict(value),
  string: (value) => typeof value === "string",
  true: (value) => value === true,
  undefined: (value) => value === undefined,
  upper: (value) => printed(value) === printed(value).toUpperCase(),
};

export function testNamed(name: string): (value: Value, args: Args) => boolean {
  const test = Object.hasOwn(TESTS, name) ? TESTS[name] : undefined;
  if (test !== undefined) return test;
  throw new TemplateFault(`No test named '${name}'.`);
}

/** Keeps elements by a test of them, or of one of their attributes. */
function selected(value: Value, [first, ...rest]: Args, ofAttribute: boolean, keeps: boolean): Value[] {
  const [test, ...args] = ofAttribute ? rest : first === undefined ? [] : [first, ...rest];
  const holds = (one: Value) => {
    countSteps();
    const tested = ofAttribute ? attributeOf(one, first) : one;
    return test === undefined ? isTrue(tested) : testNamed(printed(test))(tested, args);
  };
  // As in jinja2, None has no elements here, while a loop over it fails.
  const kept = isTrue(value) ? iterated(value).filter((one) => holds(one) === keeps) : [];
  return Lazy.from(kept);
}

function sorted(value: Value, args: Args, named: Named): Value[] {
  const reverse = isTrue(argument(args, named, 0, "reverse"));
  const isCased = isTrue(argument(args, named, 1, "case_sensitive"));
  const attribute = argument(args, named, 2, "attribute");
  const key = (one: Value) => {
    const found = attribute === undefined || attribute === null ? one : attributeOf(one, attribute);
    return typeof found === "string" && !isCased ? found.toLowerCase() : found;
  };
  const order = [...iterated(value)].sort((a, b) => compare(key(a), key(b)) * (reverse ? -1 : 1));
  return order;
}

function spaces(count: Value): string {
  const length = Math.max(0, Math.trunc(toNumber(count)) || 0);
  countBytes(length);
  return " ".repeat(length);
}

function indented(text: string, args: Args, named: Named): string {
  const width = argument<Value>(args, named, 0, "width", 4);
  const first = isTrue(argument(args, named, 1, "first"));
  const blank = isTrue(argument(args, named, 2, "blank"));
  const space = typeof width === "string" ? width : spaces(width);
  const lines = splitBy(text, "\n");
  const rest = lines.map((line, i) => {
    const isIndented = i === 0 ? first : line !== "" || blank;
    return isIndented ? counted(space) + line : line;
  });
  return joinTexts(rest, "\n");
}

function extreme(value: Value, named: Named, sign: number): Value {
  const attribute = named.get("attribute");
  const key = (one: Value) => {
    const found = attribute === undefined ? one : attributeOf(one, attribute);
    return typeof found === "string" ? found.toLowerCase() : found;
  };
  return iterated(value).reduce(
    (best, one) => (best === undefined || compare(key(one), key(best)) * sign > 0 ? one : best),
    undefined as Value,
  );
}

function parsedNumber(value: Value, otherwise: Value, integral: boolean): Value {
  const text = typeof value === "string" ? value.trim().replaceAll("_", "") : value;
  const number = text === "" || text === null || text === undefined ? Number.NaN : toNumber(text);
  if (!Number.isFinite(number)) return otherwise;
  return integral ? Math.trunc(number) : number;
}

/** `json.dumps`, whose options transformers passes on. */
function toJson(value: Value, args: Args, named: Named): string {
  const [ensureAscii, indent, separators, sortKeys] = [
    "ensure_ascii",
    "indent",
    "separators",
    "sort_keys",
  ].map((name, index) => argument(args, named, index, name));
  const given = Array.isArray(separators) ? separators.map(printed) : undefined;
  const space = typeof indent === "number" ? spaces(indent) : typeof indent === "string" ? indent : undefined;
  return jsonOf(value, {
    indent: space,
    itemSeparator: given?.[0] ?? (space === undefined ? ", " : ","),
    keySeparator: given?.[1] ?? ": ",
    sortKeys: isTrue(sortKeys),
    ensureAscii: isTrue(ensureAscii),
  });
}

type Filter = (value: Value, args: Args, named: Named) => Value;

const ofText =
  (change: (text: string, args: Args, named: Named) => Value): Filter =>
  (value, args, named) =>
    change(printed(value), args, named);

function lengthOf(value: Value): number {
  if (isDict(value)) return value.size;
  if (value === null || isNumeric(value) || value instanceof Lazy) {
    throw new TemplateFault(`object of type '${typeName(value)}' has no len()`);
  }
  return iterated(value).length;
}

const defaulted: Filter = (value, args, named) => {
  const otherwise = argument<Value>(args, named, 0, "default_value", "");
  const isFalse = isTrue(argument(args, named, 1, "boolean")) && !isTrue(value);
  return value === undefined || isFalse ? otherwise : value;
};

const FILTERS: Readonly<Record<string, Filter>> = {
  abs: (value) => Math.abs(toNumber(value)),
  attr: (value, [name]) => attributeOf(value, name),
  batch: (value, [given, fill]) => {
    const items = iterated(value);
    const size = Math.trunc(toNumber(given));
    if (!(size >= 1)) throw new TemplateFault(`batch of ${printed(given)} elements`);
    const rows: Value[][] = [];
    for (let i = 0; i < items.length; i += size) rows.push(items.slice(i, i + size));
    const last = rows.at(-1);
    if (fill !== undefined && last !== undefined) {
      countBytes(8 * (size - last.length));
      while (last.length < size) last.push(fill);
    }
    return rows;
  },
  capitalize: ofText(capitalized),
  count: lengthOf,
  d: defaulted,
  default: defaulted,
  dictsort: (value, args, named) => {
    const by = argument<Value>(args, named, 1, "by", "key") === "value" ? 1 : 0;
    const reverse = isTrue(argument(args, named, 2, "reverse"));
    const key = (item: Value) => {
      const found = (item as Tuple)[by];
      return typeof found === "string" ? found.toLowerCase() : found;
    };
    return itemsOf(value as Dict).sort((a, b) => compare(key(a), key(b)) * (reverse ? -1 : 1));
  },
  e: ofText((text) => escaped(text)),
  escape: ofText((text) => escaped(text)),
  first: (value) => iterated(value)[0],
  float: (value, [otherwise = 0]) => parsedNumber(value, otherwise, false),
  format: ofText((text, args) =>
    args.reduce<string>((one, arg) => counted(one).replace(/%[sd]/, () => counted(printed(arg))), text),
  ),
  indent: ofText(indented),
  int: (value, [otherwise = 0]) => parsedNumber(value, otherwise, true),
  items: (value) => (value === undefined ? [] : itemsOf(value as Dict)),
  join: (value, args, named) => {
    const attribute = argument(args, named, 1, "attribute");
    const items = iterated(value).map((one) => (attribute === undefined ? one : attributeOf(one, attribute)));
    return joinTexts(
      Array.from(items, (one) => printed(one)),
      printed(argument<Value>(args, named, 0, "d", "")),
    );
  },
  last: (value) => iterated(value).at(-1),
  length: lengthOf,
  list: (value) => [...iterated(value)],
  lower: ofText((text) => text.toLowerCase()),
  map: (value, [filter, ...args], named) => {
    const attribute = named.get("attribute");
    if (attribute !== undefined) {
      const otherwise = named.get("default");
      return Lazy.from(iterated(value).map((one) => attributeOf(one, attribute) ?? otherwise));
    }
    return Lazy.from(iterated(value).map((one) => filterNamed(printed(filter))(one, args, named)));
  },
  max: (value, _, named) => extreme(value, named, 1),
  min: (value, _, named) => extreme(value, named, -1),
  reject: (value, args) => selected(value, args, false, false),
  rejectattr: (value, args) => selected(value, args, true, false),
  replace: ofText((text, [from, to, most = -1]) =>
    replaced(text, printed(from), printed(to), toNumber(most ?? -1)),
  ),
  reverse: (value) =>
    typeof value === "string" ? [...iterated(value)].reverse().join("") : [...iterated(value)].reverse(),
  round: (value, args, named) => {
    const factor = 10 ** numberArgument(args, named, 0, "precision", 0);
    const method = argument<string>(args, named, 1, "method", "common");
    const round = method === "ceil" ? Math.ceil : method === "floor" ? Math.floor : Math.round;
    return round(toNumber(value) * factor) / factor;
  },
  safe: (value) => printed(value),
  select: (value, args) => selected(value, args, false, true),
  selectattr: (value, args) => selected(value, args, true, true),
  sort: sorted,
  string: (value) => printed(value),
  sum: (value, args, named) => {
    const attribute = argument(args, named, 0, "attribute");
    return iterated(value)
      .map((one) => toNumber(attribute === undefined ? one : attributeOf(one, attribute)))
      .reduce((sum, one) => sum + one, numberArgument(args, named, 1, "start", 0));
  },
  title: ofText(titled),
  tojson: toJson,
  trim: ofText((text, [characters]) => stripped(text, characters, true, true)),
  truncate: ofText((text, args, named) => {
    const length = numberArgument(args, named, 0, "length", 255);
    const end = printed(argument<Value>(args, named, 2, "end", "..."));
    if (text.length <= length + numberArgument(args, named, 3, "leeway", 5)) return text;
    const cut = text.slice(0, length - end.length);
    if (isTrue(argument(args, named, 1, "killwords"))) return cut + end;
    return (cut.includes(" ") ? cut.slice(0, cut.lastIndexOf(" ")) : cut) + end;
  }),
  unique: (value) =>
    iterated(value).filter((one, i, all) => all.findIndex((other) => isEqual(one, other)) === i),
  upper: ofText((text) => text.toUpperCase()),
  wordcount: ofText((text) => text.split(/\s+/).filter((word) => word !== "").length),
};

export function filterNamed(name: string): Filter {
  const filter = Object.hasOwn(FILTERS, name) ? FILTERS[name] : undefined;
  if (filter !== undefined) {
    return (value, args, named) => {
      countPass(value);
      return filter(value, args, named);
    };
  }
  throw new TemplateFault(`No filter named '${name}'.`);
}

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (one) => ESCAPES[one]!);
}
