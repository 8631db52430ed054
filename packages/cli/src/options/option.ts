import { readBoolean, readInteger, readIntegerFrom } from "./read-value.js";

/** An option of `tritonjs serve`. */
export interface Option<T> {
  /** What stands for the value in the help; an option without it takes no value. */
  readonly argument?: string;
  readonly description: string;
  /** The value when the option is not given. */
  readonly initial: T;
  /** Why the option is taken but changes nothing; a warning says so. */
  readonly noEffect?: string;
  /** The same where only this machine or this version of Node is in the way. */
  readonly noEffectHere?: string;
  /** Printed when the option is used. */
  readonly deprecated?: (text: string) => string;
  /** Reads a value; `previous` is that of the same option given before, or the initial one. */
  read(text: string, previous: T): T;
}

type Details = Pick<Option<unknown>, "noEffect" | "noEffectHere" | "argument">;

export function text(description: string, initial: string, details: Details = {}): Option<string> {
  return { argument: "string", description, initial, read: (value) => value, ...details };
}

export function integer(description: string, initial: number, details: Details = {}): Option<number> {
  return { argument: "integer", description, initial, read: readInteger, ...details };
}

/** A 64-bit integer that may not be less than `least`. */
export function integerFrom(least: number, description: string, initial: number): Option<number> {
  return { argument: "integer", description, initial, read: readIntegerFrom(least) };
}

export function boolean(description: string, initial: boolean, details: Details = {}): Option<boolean> {
  return { argument: "boolean", description, initial, read: readBoolean, ...details };
}

/** Given without a value on the command line; other sources say whether it is on. */
export function flag(description: string, details: Details = {}): Option<boolean> {
  return { description, initial: false, read: (text) => text === "" || readBoolean(text), ...details };
}

/** Read by a function of its own. */
export function value<T>(
  argument: string,
  description: string,
  initial: T,
  read: (text: string, previous: T) => T,
  details: Details = {},
): Option<T> {
  return { argument, description, initial, read, ...details };
}

/** May be given several times. */
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
