/** Returns its texts in capital letters. */
export default function shout(requests) {
  return requests.map(({ inputs: { text } }) => ({
    loud: text.strings().map((line) => [line.toUpperCase()]),
  }));
}
