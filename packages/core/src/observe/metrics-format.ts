/** Formats of the metrics page. */
export type MetricsFormat = "prometheus" | "openmetrics";

/**
 * The format for a client, from its header `Accept`: OpenMetrics for a client that names it and does not prefer
 * `text/plain`, as Prometheus does.
 */
export function metricsFormat(accept: string | undefined): MetricsFormat {
  if (accept === undefined) return "prometheus";
  let [openMetrics, text] = [0, 0];
  for (const range of accept.toLowerCase().split(",")) {
    const [type, ...parameters] = range.split(";").map((part) => part.trim());
    const weight = quality(parameters);
    if (type === "application/openmetrics-text") {
      const version = parameters.find((one) => one.startsWith("version="))?.slice("version=".length);
      if (version === undefined || /^"?1\./.test(version)) openMetrics = Math.max(openMetrics, weight);
    } else if (type === "text/plain") text = Math.max(text, weight);
  }
  return openMetrics > 0 && openMetrics >= text ? "openmetrics" : "prometheus";
}

function quality(parameters: readonly string[]): number {
  const given = parameters.find((one) => one.startsWith("q="));
  const weight = given === undefined ? 1 : Number(given.slice(2));
  return weight >= 0 && weight <= 1 ? weight : 0;
}
