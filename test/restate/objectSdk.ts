/** The SDK of the server as tests of its objects need it: an object is the record of its handlers. */
import type { Sdk } from '../../src/restate/objectCalls.ts';

export class TerminalError extends Error {}

const handlerOf = (...args: unknown[]): unknown => args.at(-1);
export const sdk = {
  object: (made: object) => made,
  handlers: { object: { shared: handlerOf, exclusive: handlerOf } },
  serde: {},
  TerminalError,
  RestatePromise: Promise,
} as unknown as Sdk;
