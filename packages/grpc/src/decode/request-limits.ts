/** Most inputs, and most requested outputs, of a request to a model that does not have more, as over HTTP. */
export const MAX_TENSORS = 4096;

/** Most parameters of a request. Each becomes a property of one object, which takes microseconds. */
export const MAX_PARAMETERS = 4096;

/** Most parameters of all tensors of a request together: enough for shared memory, which takes three for each. */
export const MAX_TENSOR_PARAMETERS = 4 * MAX_TENSORS;

/** Most elements in `bytes_contents` of a request, as values of a JSON document over HTTP. */
export const MAX_STRINGS = 2 ** 21;
