export default (requests) => requests.map(({ inputs: { x } }) => ({ y: x }));
