/**
 * Formats of JSON schemas as patterns of ECMAScript, without `^` and `$`. Each matches a part of what its RFC allows, so
 * that every validator takes the text. A format that is not here is a note and limits nothing, as the specification has
 * it.
 */
const DATE =
  "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))";
const TIME =
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
const BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
const HOST = `(?=.{1,253}$)${LABEL}(?:\\.${LABEL}){0,20}`;
const H16 = "[0-9A-Fa-f]{1,4}";
const PATH_CHARACTER = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})";
const PATH = `(?:/${PATH_CHARACTER}{0,200}){0,40}`;
const QUERY = `(?:\\?(?:${PATH_CHARACTER}|[/?]){0,400})?(?:#(?:${PATH_CHARACTER}|[/?]){0,200})?`;
const DOMAIN = `${LABEL}(?:\\.${LABEL}){1,10}`;
const POINTER = "(?:/(?:[^~/]|~[01])*)*";

export const FORMATS: ReadonlyMap<string, string> = new Map([
  ["date", DATE],
  ["time", TIME],
  ["date-time", `${DATE}T${TIME}`],
  ["iso-time", TIME],
  ["iso-date-time", `${DATE}T${TIME}`],
  [
    "duration",
    "P(?:[0-9]{1,9}W|(?:[0-9]{1,9}Y(?:[0-9]{1,9}M(?:[0-9]{1,9}D)?)?|[0-9]{1,9}M(?:[0-9]{1,9}D)?|[0-9]{1,9}D)(?:T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S))?|T(?:[0-9]{1,9}H(?:[0-9]{1,9}M(?:[0-9]{1,9}S)?)?|[0-9]{1,9}M(?:[0-9]{1,9}S)?|[0-9]{1,9}S))",
  ],
  ["uuid", "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"],
  ["email", `[A-Za-z0-9_+-]{1,30}(?:\\.[A-Za-z0-9_+-]{1,30})?@${DOMAIN}`],
  ["idn-email", `[A-Za-z0-9_+-]{1,30}(?:\\.[A-Za-z0-9_+-]{1,30})?@${DOMAIN}`],
  ["hostname", HOST],
  ["idn-hostname", HOST],
  ["ipv4", `${BYTE}(?:\\.${BYTE}){3}`],
  [
    "ipv6",
    `(?:${H16}:){7}${H16}|::(?:${H16}(?::${H16}){0,5})?|${H16}::(?:${H16}(?::${H16}){0,4})?|${H16}:${H16}::(?:${H16}(?::${H16}){0,3})?`,
  ],
  ["uri", `[A-Za-z][A-Za-z0-9+.-]{0,30}://${DOMAIN}(?::[0-9]{1,4})?${PATH}${QUERY}`],
  ["iri", `[A-Za-z][A-Za-z0-9+.-]{0,30}://${DOMAIN}(?::[0-9]{1,4})?${PATH}${QUERY}`],
  [
    "url",
    `https?://[a-z0-9]{1,40}(?:\\.[a-z0-9]{2,20}){0,4}\\.[a-z]{2,10}(?::[1-9][0-9]{1,3})?(?:/[A-Za-z0-9._~-]{0,200}){0,40}`,
  ],
  ["uri-reference", `(?:[A-Za-z][A-Za-z0-9+.-]{0,30}://${DOMAIN}(?::[0-9]{1,4})?)?${PATH}${QUERY}`],
  ["iri-reference", `(?:[A-Za-z][A-Za-z0-9+.-]{0,30}://${DOMAIN}(?::[0-9]{1,4})?)?${PATH}${QUERY}`],
  [
    "uri-template",
    `(?:[A-Za-z][A-Za-z0-9+.-]{0,30}://${DOMAIN}(?::[0-9]{1,4})?)?(?:/(?:[A-Za-z0-9._~-]|\\{[A-Za-z0-9_]{1,60}\\}){0,200}){0,40}`,
  ],
  ["json-pointer", POINTER],
  ["relative-json-pointer", `(?:0|[1-9][0-9]{0,9})(?:#|${POINTER})`],
  ["json-pointer-uri-fragment", "#(?:/(?:[A-Za-z0-9_.!$&'()*+,;:=@-]|%[0-9A-Fa-f]{2}|~0|~1)*)*"],
  ["regex", "[A-Za-z0-9_ ,;:-]*"],
  ["byte", "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"],
]);
