import { readBoolean, readInteger, readIntegerFrom } from "./read-value.js";

/** An option of `tritonjs serve`. */
export interface Option<T> {
  /** Placeholder of the value in the help; an option without it takes no value. */
  readonly argument?: string;
  readonly description: string;
  /** The value when the option is not given. */
  readonly initial: T;
  /** What shells propose as its value. @default what fits the placeholder */
  readonly completes?: "file" | "directory" | readonly string[];
  /** Why the option is accepted without effect; a warning says so. */
  readonly noEffect?: string;
  /** Why the option has no effect on this machine or this version of Node. */
  readonly noEffectHere?: string;
  /** Makes the warning to print when the option is used. */
  readonly deprecated?: (text: string) => string;
  /** Reads a value; `previous` is the value of the same option given before, or the initial one. */
  read(text: string, previous: T): T;
}

type Details = Pick<Option<unknown>, "noEffect" | "noEffectHere" | "argument" | "completes">;

export function text(description: string, initial: string, details: Details = {}): Option<string> {
  return { argument: "string", description, initial, read: (value) => value, ...details };
}

export function integer(description: string, initial: number, details: Details = {}): Option<number> {
  return { argument: "integer", description, initial, read: readInteger, ...details };
}

/** An option whose value is a 64-bit integer of at least `least`. */
export function integerFrom(least: number, description: string, initial: number): Option<number> {
  return { argument: "integer", description, initial, read: readIntegerFrom(least) };
}

export function boolean(description: string, initial: boolean, details: Details = {}): Option<boolean> {
  return { argument: "boolean", description, initial, read: readBoolean, ...details };
}

/** An option without a value on the command line; other sources have a boolean. */
export function flag(description: string, details: Details = {}): Option<boolean> {
  return { description, initial: false, read: (text) => text === "" || readBoolean(text), ...details };
}

/** An option with a reader of its own. */
export function value<T>(
  argument: string,
  description: string,
  initial: T,
  read: (text: string, previous: T) => T,
  details: Details = {},
): Option<T> {
  return { argument, description, initial, read, ...details };
}

/** An option that may be given several times. */
export function list<T>(
  argument: string,
  description: string,
  read: (text: string) => T,
  details: Details = {},
): Option<readonly T[]> {
  return {
    argument,
    description,
    initial: [],
    read: (text, previous) => [...previous, read(text)],
    ...details,
  };
}
