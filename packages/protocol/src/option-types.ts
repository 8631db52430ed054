import { closestName } from "./closest-name.js";
import { TritonError } from "./triton-error.js";

/**
 * Lists the keys of a type, in the order of `keys`. The compiler reports a key that is missing in `keys`, and a key
 * that the type lacks.
 *
 * @example `const LEVELS = keyList<Record<Level, true>>({ info: true, error: true })`
 */
export function keyList<T extends object>(
  keys: {
    readonly [Key in keyof T & string]-?: true;
  },
): readonly (keyof T & string)[] {
  return Object.keys(keys) as (keyof T & string)[];
}

/** The name of a type of values. "object" is anything but null, lists and functions. */
type TypeName = "string" | "number" | "bigint" | "boolean" | "function" | "array" | "object";

/** The type of an option: one or several of the names; "any" if the code that uses the option checks it. */
export type OptionType = TypeName | "any" | readonly TypeName[];

/** The options of an object by name. */
export type OptionTypes = Readonly<Record<string, OptionType>>;

type TypeNameOf<V> = V extends undefined
  ? never
  : V extends string
    ? "string"
    : V extends number
      ? "number"
      : V extends bigint
        ? "bigint"
        : V extends boolean
          ? "boolean"
          : V extends (...parameters: never[]) => unknown
            ? "function"
            : V extends readonly unknown[]
              ? "array"
              : "object";

/**
 * The table of the options of a type. The compiler reports a missing option, an unknown one, and one of another type.
 *
 * @example `const OPTION_TYPES = optionTypes<Options>({ rate: "number", names: "array" })`
 */
export function optionTypes<T extends object>(
  types: {
    readonly [Key in keyof T & string]-?: TypeNameOf<T[Key]> | readonly TypeNameOf<T[Key]>[] | "any";
  },
): OptionTypes {
  return types as OptionTypes;
}

/** The type of each option of a table of defaults. */
export function typesOfDefaults(defaults: object): OptionTypes {
  return Object.fromEntries(
    Object.entries(defaults).map(([key, value]) => [key, typeName(value) as TypeName]),
  );
}

/** Options of other objects, by the words for the object: `new Triton()`, `config.batcher`. */
export type OptionsElsewhere = Readonly<Record<string, OptionTypes>>;

/**
 * One line for each key of `value` that is not in `known`. It names the object that has such an option, or proposes the
 * key that the user most likely meant, or lists all of them.
 *
 * @param where the object in the text, such as `config.batcher`
 */
export function unknownOptions(
  where: string,
  value: object,
  known: OptionTypes,
  elsewhere: OptionsElsewhere = {},
): string[] {
  return Object.keys(value)
    .filter((key) => !Object.hasOwn(known, key))
    .map(
      (key) => `${where} has an unknown option '${key}': ${adviceFor(key, Object.keys(known), elsewhere)}`,
    );
}

/** One line for each known option whose value has another type, or one about `value` if it holds no options at all. */
export function wrongTypes(where: string, value: unknown, known: OptionTypes): string[] {
  const names = Object.keys(known);
  if (typeName(value) !== "object")
    return [`${where}: expected an object of options such as { ${names[0]}: ... }, got ${shown(value)}`];
  const own = Object.entries(value as object);
  const isOther = !isPlain(value as object) && !names.some((name) => name in (value as object));
  if (isOther) return [`${where}: expected an object with ${names.join(", ")}, got ${shown(value)}`];
  return own
    .filter(([key, one]) => Object.hasOwn(known, key) && !hasType(one, known[key]!))
    .map(([key, one]) => `${where}, option '${key}': expected ${typeWords(known[key]!)}, got ${shown(one)}`);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function hasType(value: unknown, type: OptionType): boolean {
  if (value === undefined || type === "any") return true;
  const name = typeName(value);
  return typeof type === "string" ? type === name : type.includes(name as TypeName);
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : Number.isNaN(value) ? "NaN" : typeof value;
}

function typeWords(type: OptionType): string {
  const words = typeof type === "string" ? [type] : type;
  return words.map((word) => `${/^[ao]/.test(word) ? "an" : "a"} ${word}`).join(" or ");
}

function shown(value: unknown): string {
  const name = typeName(value);
  if (name === "string") return `the string '${String(value).slice(0, 40)}'`;
  if (name === "bigint") return `${String(value)}n`;
  if (name !== "object") return name === "function" || name === "array" ? typeWords(name) : String(value);
  const maker: unknown = (value as object).constructor;
  return typeof maker === "function" && maker !== Object ? `an object of class ${maker.name}` : "an object";
}

function adviceFor(key: string, known: readonly string[], elsewhere: OptionsElsewhere): string {
  const owner = Object.entries(elsewhere).find(([, types]) => Object.hasOwn(types, key));
  if (owner !== undefined) return `it is an option of ${owner[0]}`;
  const meant = closestName(key, known);
  return meant === undefined ? `expected one of ${known.join(", ")}` : `did you mean '${meant}'?`;
}

/**
 * Checks that an object has known options of the right types only, for callers without TypeScript.
 *
 * @param where the object in the text, such as `http()`
 * @param elsewhere options of other objects, which users may confuse with this one
 * @param required options that have no default
 * @throws TritonError INVALID_ARG with a line for each wrong option. Of an unknown one, it proposes the option that is
 * likely meant.
 * @example `assertOptions("http()", { prot: 8000 }, { port: "number" }) // http() has an unknown option 'prot': did you mean 'port'?`
 */
export function assertOptions(
  where: string,
  options: object,
  known: OptionTypes,
  elsewhere?: OptionsElsewhere,
  required: readonly string[] = [],
): void {
  const wrong = wrongTypes(where, options, known);
  // Of an object of another kind, all its keys are unknown.
  const isReadable = wrong.every((line) => !line.startsWith(`${where}:`));
  if (isReadable) {
    wrong.unshift(...unknownOptions(where, options, known, elsewhere));
    // An unknown option may be the missing one, misspelled.
    const missing =
      wrong.length > 0
        ? []
        : required.filter((key) => (options as Record<string, unknown>)[key] === undefined);
    wrong.push(
      ...missing.map((key) => `${where}, option '${key}': expected ${typeWords(known[key]!)}, got none`),
    );
  }
  throwProblems(wrong, "INVALID_OPTION");
}

/** @throws TritonError INVALID_ARG with all problems, one on each line, if there are any */
export function throwProblems(
  problems: readonly string[],
  reason: "INVALID_CONFIG" | "INVALID_OPTION" = "INVALID_CONFIG",
): void {
  if (problems.length > 0) throw new TritonError("INVALID_ARG", problems.join("\n"), { reason });
}
