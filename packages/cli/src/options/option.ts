/** An option of `tritonjs serve`. */
export interface Option<T> {
  /** Placeholder of the value in the help; an option without it takes no value. */
  readonly argument?: string;
  readonly description: string;
  /** The value when the option is not given. */
  readonly initial: T;
  /** Values that shells propose. @default those that fit the placeholder */
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

export function integerFrom(least: number, description: string, initial: number): Option<number> {
  const read = (text: string): number => {
    const value = readLong(text);
    if (value < least) throw new OptionError(`expected an integer of at least ${least}, got ${text}`);
    return value;
  };
  return { argument: "integer", description, initial, read };
}

export function boolean(description: string, initial: boolean, details: Details = {}): Option<boolean> {
  return { argument: "boolean", description, initial, read: readBoolean, ...details };
}

/** An option without a value on the command line; other sources have a boolean. */
export function flag(description: string, details: Details = {}): Option<boolean> {
  return { description, initial: false, read: (text) => text === "" || readBoolean(text), ...details };
}

export function value<T>(
  argument: string,
  description: string,
  initial: T,
  read: (text: string, previous: T) => T,
  details: Details = {},
): Option<T> {
  return { argument, description, initial, read, ...details };
}

/** One of several words. */
export function choice<W extends string>(
  words: readonly W[],
  description: string,
  initial: W,
  complaint: string,
): Option<W> {
  const read = readChoice(words, complaint);
  return { argument: "string", description, initial, read, completes: words };
}

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

/** An invalid command line. */
export class OptionError extends Error {
  override readonly name = "OptionError";

  constructor(
    message: string,
    /** Place of the message relative to the usage; `alone` for an error that needs no usage. */
    readonly place: "before usage" | "after usage" | "alone" = "after usage",
  ) {
    super(message);
  }
}

/** The error for options of which no server can be made. */
export function creating(reason: string): OptionError {
  return new OptionError(`error: creating server: ${reason}`, "alone");
}

const INT_MAX = 2n ** 31n - 1n;
const LONG_MAX = 2n ** 63n - 1n;

/**
 * Reads a 32-bit integer as C++ `stoi` does: the leading digits count, and the rest is ignored.
 *
 * @throws OptionError with tritonserver's text.
 */
export function readInteger(text: string): number {
  return Number(readDigits(text, INT_MAX));
}

/** Reads a 64-bit integer like {@link readInteger}. Beyond 2^53 it is rounded. */
export function readLong(text: string): number {
  return Number(readDigits(text, LONG_MAX));
}

/** Reads a floating point number at the start of the text. */
export function readDouble(text: string): number {
  const match = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/.exec(text);
  if (match === null) throw invalid(text);
  return Number(match[0]);
}

/** Reads `true`, `on`, `1`, `false`, `off` or `0`, in any case. */
export function readBoolean(text: string): boolean {
  const value = text.toLowerCase();
  if (["true", "on", "1"].includes(value)) return true;
  if (["false", "off", "0"].includes(value)) return false;
  throw new OptionError(`invalid value for bool option: ${text}`);
}

/** Reads a number; `true` is 1 and `false` is 0. */
export function readLevel(text: string): number {
  const value = text.toLowerCase();
  if (value === "true") return 1;
  return value === "false" ? 0 : readInteger(text);
}

/** Makes a reader of one of several words, in any case. */
export function readChoice<W extends string>(words: readonly W[], complaint: string) {
  return (text: string): W => {
    const word = words.find((known) => known === text.toLowerCase());
    if (word === undefined) throw new OptionError(complaint);
    return word;
  };
}

function readDigits(text: string, limit: bigint): bigint {
  const match = /^\s*([+-]?\d+)/.exec(text);
  if (match === null) throw invalid(text);
  const value = BigInt(match[1]!.replace("+", ""));
  if (value > limit || value < -limit - 1n) {
    throw new OptionError(`Provided option value is out of bound. Got ${text}`);
  }
  return value;
}

function invalid(text: string): OptionError {
  return new OptionError(`Invalid option value. Got ${text}`);
}

/** `name,key=value`: a setting of a named object. */
export interface NamedSetting {
  readonly name: string;
  readonly key: string;
  readonly value: string;
}

/** `name:count` or `name:count:device`. */
export interface ResourceSetting {
  readonly name: string;
  readonly count: number;
  /** Undefined for every device. */
  readonly device: number | undefined;
}

/** `<backend>,<setting>=<value>`, or `<setting>=<value>` for all backends, whose name is then empty. */
export function readBackendSetting(text: string): NamedSetting {
  if (text.startsWith(",")) {
    throw new OptionError(
      "No backend specified. --backend-config option format is <backend name>,<setting>=<value> or " +
        `<setting>=<value>. Got ${text}`,
    );
  }
  const format = `--backend-config option format is '<backend name>,<setting>=<value>'. Got ${text}`;
  return splitSetting(text, format);
}

/** `<cache>,<setting>=<value>`. */
export function readCacheSetting(text: string): NamedSetting {
  if (text.indexOf(",") <= 0) {
    throw new OptionError(
      `No cache specified. --cache-config option format is <cache name>,<setting>=<value>. Got ${text}`,
    );
  }
  return splitSetting(text, `--cache-config option format is '<cache name>,<setting>=<value>'. Got ${text}`);
}

/** `<policy>,<setting>=<value>`. */
export function readHostPolicy(text: string): NamedSetting {
  const format = `--host-policy option format is '<policy name>,<setting>=<value>'. Got ${text}`;
  const setting = splitSetting(text, format);
  if (setting.name === "") throw new OptionError(format);
  return setting;
}

/** `<setting>=<value>` of the metrics. */
export function readMetricsSetting(text: string): NamedSetting {
  const format = `--metrics-config option format is <setting>=<value>. Got ${text}`;
  const end = text.indexOf("=");
  if (end < 0 || text.slice(0, end).includes(",")) throw new OptionError(format);
  return splitSetting(`,${text}`, format);
}

/** `<resource>:<count>` or `<resource>:<count>:<device>`. */
export function readResource(text: string): ResourceSetting {
  const [name = "", count, device, ...rest] = text.split(":");
  if (count === undefined || rest.length > 0) {
    throw new OptionError(
      "--rate-limit-resource option format is '<resource_name>:<count>:<device>' or " +
        `'<resource_name>:<count>'. Got ${text}`,
    );
  }
  return {
    name,
    count: readInteger(count),
    device: device === undefined ? undefined : readInteger(device),
  };
}

/** `<first>:<second>`. */
export function readPair<T>(readSecond: (text: string) => T): (text: string) => readonly [number, T] {
  return (text) => {
    const end = text.indexOf(":");
    if (end < 0) {
      throw new OptionError(
        "Cannot parse pair option due to incorrect number of inputs.--<pair option> argument requires format " +
          `<first>:<second>. Found: ${text}`,
      );
    }
    return [readInteger(text.slice(0, end)), readSecond(text.slice(end + 1))];
  };
}

/** Splits at the first comma, and at the first equals sign after it. */
export function splitSetting(text: string, format: string): NamedSetting {
  const comma = text.indexOf(",");
  const equals = text.indexOf("=", comma + 1);
  const setting = {
    name: comma > 0 ? text.slice(0, comma) : "",
    key: text.slice(comma + 1, equals),
    value: text.slice(equals + 1),
  };
  if (equals < 0 || setting.key === "" || setting.value === "") throw new OptionError(format);
  return setting;
}
