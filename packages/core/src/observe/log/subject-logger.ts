import type { Logger, LogSubject, SubjectLogger } from "./logger.js";

type Level = keyof Logger;

/** A logger of pino or fastify: `info(fields, message)`. */
type FieldsFirstLogger = Record<Level, (fieldsOrMessage: object | string, message?: string) => void>;

/** A logger of winston: `info(message, fields)`. */
type FieldsLastLogger = Record<Level, (message: string, fields?: object) => void>;

/**
 * Makes a logger that takes the subject of each message. It recognises the loggers of pino and winston by their methods.
 * Any other logger gets the message alone, because `console` would print the fields behind it.
 */
export function subjectLogger(logger: Logger | SubjectLogger): SubjectLogger {
  if (takesSubjects(logger)) return logger;
  if (isPino(logger)) {
    const pino = logger as object as FieldsFirstLogger;
    return passing((level, message, about) =>
      about === undefined ? pino[level](message) : pino[level](about, message),
    );
  }
  if (isWinston(logger)) {
    const winston = logger as object as FieldsLastLogger;
    return passing((level, message, about) =>
      about === undefined ? winston[level](message) : winston[level](message, about),
    );
  }
  return passing((level, message) => logger[level](message));
}

function passing(write: (level: Level, message: string, about?: LogSubject) => void): SubjectLogger {
  const at = (level: Level) => (message: string, about?: LogSubject) => write(level, message, about);
  return {
    takesSubjects: true,
    error: at("error"),
    warn: at("warn"),
    info: at("info"),
    debug: at("debug"),
  };
}

function takesSubjects(logger: Logger | SubjectLogger): logger is SubjectLogger {
  return "takesSubjects" in logger && logger.takesSubjects === true;
}

function isPino(logger: Logger): boolean {
  return "bindings" in logger && typeof logger.bindings === "function";
}

function isWinston(logger: Logger): boolean {
  return "transports" in logger && "configure" in logger && typeof logger.configure === "function";
}
