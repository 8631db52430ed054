const DATE =
  "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))";
const TIME =
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
const CLOCK_PERIOD = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
const DAYS = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)";
const BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?";
const DOMAIN = `${LABEL}(?:\\.${LABEL})+`;
/** At most 63 characters a label, and 253 together. */
const SHORT_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,28}[A-Za-z0-9])?";
const HOST = `${SHORT_LABEL}(?:\\.${SHORT_LABEL}){0,7}`;
const H16 = "[0-9A-Fa-f]{1,4}";
const PATH_CHARACTER = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";
const PATH = `(?:/${PATH_CHARACTER}*)*`;
const QUERY = `(?:\\?(?:${PATH_CHARACTER}|[/?])*)?(?:#(?:${PATH_CHARACTER}|[/?])*)?`;
const ORIGIN = `[A-Za-z][A-Za-z0-9+.-]*://${DOMAIN}(?::[0-9]{1,4})?`;
const URI = `${ORIGIN}${PATH}${QUERY}`;
const URI_REFERENCE = `(?:${ORIGIN})?${PATH}${QUERY}`;
const EMAIL = `[A-Za-z0-9_+-]+(?:\\.[A-Za-z0-9_+-]+)*@${DOMAIN}`;
const POINTER = "(?:/(?:[^~/]|~[01])*)*";

/**
 * Formats of JSON schemas as patterns of ECMAScript, without `^` and `$`. Each matches a part of what its RFC allows, so
 * that every validator takes the text. A format that is not here is a note and limits nothing, as the specification has
 * it.
 */
export const FORMATS: ReadonlyMap<string, string> = new Map([
  ["date", DATE],
  ["time", TIME],
  ["iso-time", TIME],
  ["date-time", `${DATE}T${TIME}`],
  ["iso-date-time", `${DATE}T${TIME}`],
  ["duration", `P(?:[0-9]+W|${DAYS}(?:${CLOCK_PERIOD})?|${CLOCK_PERIOD})`],
  ["uuid", "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"],
  ["email", EMAIL],
  ["idn-email", EMAIL],
  ["hostname", HOST],
  ["idn-hostname", HOST],
  ["ipv4", `${BYTE}(?:\\.${BYTE}){3}`],
  [
    "ipv6",
    `(?:${H16}:){7}${H16}|::(?:${H16}(?::${H16}){0,5})?|${H16}::(?:${H16}(?::${H16}){0,4})?|${H16}:${H16}::(?:${H16}(?::${H16}){0,3})?`,
  ],
  ["uri", URI],
  ["iri", URI],
  ["url", "https?://[a-z0-9]+(?:\\.[a-z0-9]+){0,4}\\.[a-z]{2,10}(?::[1-9][0-9]{1,3})?(?:/[A-Za-z0-9._~-]*)*"],
  ["uri-reference", URI_REFERENCE],
  ["iri-reference", URI_REFERENCE],
  ["uri-template", `(?:${ORIGIN})?(?:/(?:[A-Za-z0-9._~-]|\\{[A-Za-z0-9_]+\\})*)*`],
  ["json-pointer", POINTER],
  ["relative-json-pointer", `(?:0|[1-9][0-9]{0,9})(?:#|${POINTER})`],
  ["json-pointer-uri-fragment", "#(?:/(?:[A-Za-z0-9_.!$&'()*+,;:=@-]|%[0-9A-Fa-f]{2}|~0|~1)*)*"],
  ["regex", "[A-Za-z0-9_ ,;:-]*"],
  ["byte", "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"],
]);
