/** Marks a recorded value that depends on time or machine. */
const MASKED = "<value>";

/** Series that come from a backend of the recording and not from the server. */
const FROM_BACKEND = /^input_byte_size_counter/;

/** Series whose values depend on the machine. */
const OF_MACHINE = /^nv_(cpu|pinned_memory|model_load)_/;

/** Families of the recorded server; our own families have other names. */
const RECORDED_FAMILY = /^nv_/;

/** Families that newer servers have for models of more kinds. */
const OF_NEWER_SERVERS = /^nv_inference_first_response_histogram_ms/;

/** Series of the whole cache, which the recorded server updates once a second. */
const OF_WHOLE_CACHE = /^nv_cache_(util|num_(?!\w+_per_model)|(lookup|insertion)_duration)/;

/**
 * Lists which recorded series a metrics page lacks, which have other values, and which the recording does not have.
 * @param page Prometheus text
 * @param lines `family{label="value"} 1`
 */
export function compareMetrics(page: string, lines: readonly string[]): string[] {
  const got = new Map(page.split("\n").flatMap((line) => parseSeries(line)));
  return lines
    .filter((line) => !FROM_BACKEND.test(line))
    .flatMap(parseSeries)
    .flatMap(([series, value]) => {
      const other = got.get(series);
      if (other === undefined) return [`${series}: expected ${value}, got no such series`];
      const masked =
        value === MASKED ||
        OF_MACHINE.test(series) ||
        OF_WHOLE_CACHE.test(series) ||
        series.includes("_duration_us");
      return masked || Object.is(Number(value), Number(other))
        ? []
        : [`${series}: expected ${value}, got ${other}`];
    });
}

/** The series of a metrics page that the recording, which lists all, does not have. */
export function furtherSeries(page: string, lines: readonly string[]): string[] {
  const recorded = new Set(lines.flatMap(parseSeries).map(([series]) => series));
  return page
    .split("\n")
    .flatMap(parseSeries)
    .map(([series]) => series)
    .filter(
      (series) => RECORDED_FAMILY.test(series) && !OF_NEWER_SERVERS.test(series) && !recorded.has(series),
    )
    .map((series) => `${series}: expected no such series`);
}

/** Recorded lines with a family's kind or help text that `page` lacks. */
export function missingFamilies(page: string, recorded: string): string[] {
  const got = new Set(page.split("\n"));
  return recorded
    .split("\n")
    .filter((line) => /^# (HELP|TYPE) /.test(line))
    .filter((line) => !FROM_BACKEND.test(line.split(" ")[2] ?? ""))
    .filter((line) => !got.has(line));
}

/** Name and sorted labels of a line, and its value. */
function parseSeries(line: string): [string, string][] {
  const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
  if (match === null) return [];
  const [, name = "", labels = "", value = ""] = match;
  const sorted = (labels.match(/\w+="(?:[^"\\]|\\.)*"/g) ?? []).sort().join(",");
  return [[`${name}{${sorted}}`, value]];
}
