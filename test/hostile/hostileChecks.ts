/**
 * Checks after every hostile test. Invariant: there was no uncaught error, the language's own objects are unchanged,
 * and every run that started has exactly one end in the log.
 */
import { afterEach, beforeEach, expect } from 'vitest';
import type { Conversation, LogEntry } from '../../src/index.ts';

const INTRINSICS: readonly object[] = [
  Object,
  Object.prototype,
  Array.prototype,
  String.prototype,
  Number.prototype,
  Function.prototype,
  Promise.prototype,
  Map.prototype,
  Set.prototype,
  Error.prototype,
  RegExp.prototype,
  Date.prototype,
  JSON,
  Reflect,
  Uint8Array.prototype,
];
const keysOf = (): string[][] => INTRINSICS.map((object) => Reflect.ownKeys(object).map(String));

const conversations: Conversation[] = [];
const stray: unknown[] = [];
const catchStray = (error: unknown): void => void stray.push(error);

/** Checks the conversation after the test. */
export function watched(conversation: Conversation): Conversation {
  conversations.push(conversation);
  return conversation;
}

/** The starts and ends of runs in this log, in order. */
function boundariesOf(log: readonly LogEntry[]): string[] {
  const kinds: readonly string[] = ['run-started', 'run-resumed', 'run-stop', 'run-suspended'];
  return log.map(({ type }) => type).filter((type) => kinds.includes(type));
}

/** Each start is followed by one end; a waiting cycle may be closed by a separate stop. */
function expectEndsOnce(log: readonly LogEntry[]): void {
  let open = false;
  let waits = false;
  for (const type of boundariesOf(log)) {
    if (type === 'run-started' || type === 'run-resumed') {
      expect(open, 'a run started before the previous one ended').toBe(false);
      open = true;
    } else {
      expect(open || (type === 'run-stop' && waits), `a ${type} without a run`).toBe(true);
      open = false;
      waits = type === 'run-suspended';
    }
  }
  expect(open, 'a run that never ended').toBe(false);
}

/** Every call has at most one result, or two if the host requested a retry. */
function expectOneResultEach(log: readonly LogEntry[]): void {
  const allowed = new Map<string, number>();
  const results = new Map<string, number>();
  for (const entry of log) {
    if (entry.type === 'call-settled' && 'retry' in entry.how) allowed.set(entry.callId, 2);
    if (entry.type === 'tool-result') results.set(entry.callId, (results.get(entry.callId) ?? 0) + 1);
  }
  for (const [callId, count] of results) expect(count, callId).toBeLessThanOrEqual(allowed.get(callId) ?? 1);
}

/** Checks the tests of this file. */
export function watchEachTest(): void {
  let before: string[][] = [];
  beforeEach(() => {
    before = keysOf();
    process.on('unhandledRejection', catchStray);
    process.on('uncaughtException', catchStray);
  });
  afterEach(async () => {
    const logs: (readonly LogEntry[])[] = [];
    for (const conversation of conversations.splice(0)) {
      await conversation.close();
      logs.push(conversation.log());
    }
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', catchStray);
    process.off('uncaughtException', catchStray);
    expect(stray.splice(0), 'uncaught errors').toEqual([]);
    expect(keysOf(), "own keys of the language's objects").toEqual(before);
    expect(({} as { polluted?: unknown; admin?: unknown }).polluted).toBeUndefined();
    expect(({} as { polluted?: unknown; admin?: unknown }).admin).toBeUndefined();
    for (const log of logs) {
      expectEndsOnce(log);
      expectOneResultEach(log);
      expect(
        log.map(({ seq }) => seq),
        'seq without a gap',
      ).toEqual(log.map((_, index) => index));
      expect(JSON.parse(JSON.stringify(log)), 'entries are JSON').toEqual(log);
    }
  });
}
