import { LOG_FORMATS } from "@tritonjs/core/frontend";
import type { LogFormat } from "@tritonjs/core/types";
import { boolean, integer, list, text, value } from "./option.js";
import { OptionError } from "./option-error.js";
import { readLevel } from "./read-value.js";

/** Options of the server as a whole, and of its log. */
export const serverOptions = {
  Server: {
    id: text("Name of the server in its metadata.", "triton"),
    "exit-timeout-secs": integer(
      "Seconds that requests in flight may take to finish after SIGTERM or SIGINT. After that the server exits with 1.",
      30,
    ),
    "exit-delay-secs": integer(
      "Seconds after SIGTERM or SIGINT in which the server still accepts requests, but reports that it is not ready. " +
        "They come before --exit-timeout-secs.",
      0,
    ),
    config: list(
      "file",
      "JSON file with options, by their names without the dashes. The command line and the environment " +
        "(TRITONJS_HTTP_PORT for --http-port) take precedence.",
      (path) => path,
    ),
  },
  Logging: {
    "log-verbose": value("integer", "Log verbose messages up to this level; 0 for none.", 0, readLevel),
    "log-info": boolean("Log messages of level INFO.", true),
    "log-warning": boolean("Log messages of level WARNING.", true),
    "log-error": boolean("Log messages of level ERROR.", true),
    "log-format": value(
      "string",
      'Format of the log: "default", "ISO8601", or "json" for an object on each line.',
      "default",
      readFormat,
      { completes: LOG_FORMATS },
    ),
    "log-file": text("File for the log; by default standard error.", "", { completes: "file" }),
  },
};

function readFormat(format: string): LogFormat {
  const known = LOG_FORMATS.find((one) => one === format);
  if (known !== undefined) return known;
  throw new OptionError("invalid argument for --log-format");
}
