/** The parts of Node that the store suite uses, for a page. */
class AssertionError extends Error {}

const isObject = (value) => typeof value === 'object' && value !== null;

/** As Node compares strictly: types, prototypes, keys and values. */
export function isDeepStrictEqual(a, b) {
  if (Object.is(a, b)) return true;
  if (!isObject(a) || !isObject(b) || Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  const [keys, others] = [Object.keys(a), Object.keys(b)];
  if (Array.isArray(a) && a.length !== b.length) return false;
  return (
    keys.length === others.length && keys.every((key) => Object.hasOwn(b, key) && isDeepStrictEqual(a[key], b[key]))
  );
}

function hold(holds, message, fallback) {
  if (!holds) throw message instanceof Error ? message : new AssertionError(message ?? fallback());
}
const shown = (value) => `${JSON.stringify(value)}`.slice(0, 300);
const differs = (a, b) => () => `expected ${shown(b)}, got ${shown(a)}`;

const assert = {
  ok: (value, message) => hold(value, message, () => `expected ${shown(value)} to hold`),
  equal: (a, b, message) => hold(Object.is(a, b), message, differs(a, b)),
  notEqual: (a, b, message) => hold(!Object.is(a, b), message, differs(a, b)),
  deepEqual: (a, b, message) => hold(isDeepStrictEqual(a, b), message, differs(a, b)),
  match: (text, pattern, message) => hold(pattern.test(text), message, differs(text, `${pattern}`)),
  fail: (message) => hold(false, message, () => 'failed'),
  throws(act, message) {
    let threw = false;
    try {
      act();
    } catch {
      threw = true;
    }
    hold(threw, typeof message === 'string' ? message : undefined, () => 'expected it to throw');
  },
};
export default assert;

class PageBuffer extends Uint8Array {
  static alloc(length, fill = '') {
    const pattern = new TextEncoder().encode(fill);
    return PageBuffer.from({ length }, (_, at) => pattern[at % pattern.length] ?? 0);
  }
  /** No copy, as that of a Buffer. */
  slice(...args) {
    return this.subarray(...args);
  }
  equals(other) {
    return this.length === other.length && this.every((byte, at) => byte === other[at]);
  }
}
globalThis.Buffer ??= PageBuffer;
globalThis.setImmediate ??= (() => {
  const { port1, port2 } = new MessageChannel();
  const waiting = [];
  port1.onmessage = () => waiting.shift()?.();
  return (act) => {
    waiting.push(act);
    port2.postMessage(null);
  };
})();
