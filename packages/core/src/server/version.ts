/** Version of the library. A test checks that it equals the version in package.json. */
export const VERSION = "0.1.0";
