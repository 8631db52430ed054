/** Version 2 triples its numbers. */
export default function triple(requests) {
  return requests.map(({ inputs: { x } }) => ({ y: x.data.map((value) => 3 * value) }));
}
