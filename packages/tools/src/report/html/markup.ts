const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Text for HTML and SVG, as content or as the value of an attribute. Control characters, which XML forbids, become spaces. */
export function escapeText(text: string | number): string {
  return String(text)
    .replace(/[&<>"']/g, (character) => ENTITIES[character]!)
    .replace(/\p{Cc}/gu, " ");
}

/** An element with escaped attributes. The content is markup. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | number>>,
  content = "",
): string {
  const written = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapeText(value)}"`);
  return `<${name}${written.join("")}>${content}</${name}>`;
}
