/** Version of the library. A test checks that it equals the version in package.json. */
// The annotation keeps the version out of the declarations, so a release does not change the API.
export const VERSION: string = "0.1.0";
