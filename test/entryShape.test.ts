/** Tests JSON values that are not entries, and logs with a gap. Every reader of a log reports the position. */
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { sampleEntries } from '../machines/log/entryKinds.ts';
import { forkConversation } from '../src/conversation/copies/fork.ts';
import { createAgent, type Json, type LogEntry, type LogStore, memoryStore, pastOf } from '../src/index.ts';
import { readable } from '../src/log/entryShape.ts';
import { scriptedModel } from '../src/testing/index.ts';
import { conversation, notice, stamped, write } from '../src/testing/storeSuite/storeCase.ts';
import { place } from './stores/storeDirectory.ts';

const open = async (store: LogStore): Promise<string> => {
  const agent = createAgent({ model: scriptedModel(['yes']), store, cwd: '/' });
  try {
    const opened = await agent.open('c');
    opened.view();
    opened.messages();
    return 'opened';
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  } finally {
    await agent.close();
  }
};

const past = (log: readonly LogEntry[]): string => {
  try {
    pastOf(log);
    return 'read';
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
};

const WRONG: readonly (Json | undefined)[] = [undefined, null, 5, 'x', [], {}, '__proto__', -1, [null]];

/** Every log that differs from this one in one field of its last entry, two levels deep. */
function* damaged(log: readonly LogEntry[]): Generator<{ what: string; log: LogEntry[] }> {
  const last = log.at(-1) as unknown as { [key: string]: unknown };
  for (const path of pathsOf(last)) {
    for (const wrong of WRONG) {
      const copy = structuredClone(log) as LogEntry[];
      const holder = path
        .slice(0, -1)
        .reduce((at, key) => at[key] as typeof last, copy.at(-1) as unknown as typeof last);
      const key = path.at(-1) ?? '';
      if (wrong === undefined) delete holder[key];
      else holder[key] = wrong;
      yield { what: `${last.type}: ${path.join('.')} = ${JSON.stringify(wrong)}`, log: copy };
    }
  }
}

function pathsOf(value: object, levels = 3): string[][] {
  const kept = Object.entries(value).filter(
    ([key]) => levels < 3 || !['seq', 'at', 'type', 'conversationId', 'runId'].includes(key),
  );
  return kept.flatMap(([key, inner]) => {
    const deeper = typeof inner === 'object' && inner !== null && levels > 1 ? pathsOf(inner, levels - 1) : [];
    return [[key], ...deeper.map((path) => [key, ...path])];
  });
}

const call = stamped('c', 1, {
  type: 'agent-output',
  item: { type: 'tool-call', callId: 'c1', name: 'read', args: {} },
});
const words = stamped('c', 1, { type: 'agent-output', item: { type: 'assistant', text: 'hello' } });

describe('an entry without the fields of its type', () => {
  test('entries of every type are accepted, also with unknown fields and types', () => {
    for (const entry of sampleEntries('c')) {
      const more = { ...entry, more: 1 };
      expect(readable(more)).toBe(more);
    }
    const later = { ...notice('c', 0), type: 'later' } as unknown as LogEntry;
    expect(readable(later)).toBe(later);
    const odd = { ...notice('c', 0), type: 'constructor' } as unknown as LogEntry;
    expect(readable(odd)).toBe(odd);
  });

  test('a value that is no entry is corrupt, and a value that is no list of entries is refused', () => {
    const bare = { seq: 1, at: 0, conversationId: 'c', runId: null };
    for (const none of [undefined, null, 5, 10n, 'x', [], {}, bare, { ...bare, type: 7 }, { type: 'notice' }]) {
      expect(() => pastOf([conversation('c'), none as never])).toThrow(expect.objectContaining({ code: 'corrupt' }));
    }
    const call = { ...bare, type: 'tool-started', callId: 10n };
    expect(() => pastOf([call as never])).toThrow(/entry 1 \(tool-started\) .* its callId is bigint;/);
    for (const none of [undefined, null, {}, 'abc', 5, new Set()] as never[]) {
      expect(() => pastOf(none)).toThrow(expect.objectContaining({ code: 'configuration' }));
      expect(() => pastOf(none, 0)).toThrow(/must be a list of entries, got /);
    }
  });

  test('earlier messages are those of a user, an assistant or a tool; another role is corrupt', () => {
    const withEarlier = (message: object) => [
      conversation('c'),
      stamped('c', 1, { type: 'history', messages: [message] } as never),
    ];
    const content = [{ type: 'text', text: 'before' }];
    expect(pastOf(withEarlier({ role: 'assistant', content, toolCalls: [] })).messages).toHaveLength(1);
    for (const role of ['system', 'constructor', '', 5]) {
      expect(() => pastOf(withEarlier({ role, content }))).toThrow(/entry 1 \(history\) .* its messages is /);
    }
  });

  test('a conversation with one is refused as corrupt, by number, type and field, and is left as it was', async () => {
    const { store, path } = await place();
    await write(store, 'c', [conversation('c'), notice('c', 1)]);
    await appendFile(path('c.jsonl'), '{"seq":2,"at":1,"type":"agent-output"}\n');
    const agent = createAgent({ model: scriptedModel([]), store });
    const message = /entry 2 \(agent-output\) of conversation "c" .* its item is nothing/;
    await expect(agent.open('c')).rejects.toThrow(message);
    await expect(agent.open('c')).rejects.toMatchObject({ name: 'CorruptLogError', code: 'corrupt' });
    await agent.close();
  });

  test('whatever one field of an entry holds, opening and the past return, or reject the log as corrupt', async () => {
    const wrong: string[] = [];
    let refused = 0;
    const ends = [words, ...sampleEntries('c').map((entry) => ({ ...entry, seq: 2 }) as LogEntry)];
    for (const end of ends) {
      const before = end.seq === 1 ? [conversation('c')] : [conversation('c'), call];
      for (const { what, log } of damaged([...before, end])) {
        const store = memoryStore();
        await write(store, 'c', log);
        const answers = [await open(store), past(log)];
        if (answers.some((answer) => !['opened', 'read', 'corrupt'].includes(answer)))
          wrong.push(`${what}: ${answers}`);
        if (answers[0] === 'corrupt') refused += 1;
        if ((answers[0] === 'corrupt') !== (answers[1] === 'corrupt')) wrong.push(`${what}: ${answers}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(refused).toBeGreaterThan(100);
  });
});

describe('a log that lacks an entry', () => {
  const log = [conversation('c'), ...[1, 2, 3, 4, 5].map((seq) => notice('c', seq))];
  const MISSING: readonly (readonly number[])[] = [
    [0],
    [1],
    [3],
    [4],
    [0, 1],
    [2, 3],
    [1, 3],
    [0, 2, 4],
    [0, 1, 2, 3, 4],
  ];

  /** A custom store that gives these entries and takes anything. */
  function giving(entries: readonly LogEntry[]): LogStore & { appended: LogEntry[] } {
    const appended: LogEntry[] = [];
    return {
      appended,
      async open() {
        return {
          async *read() {
            yield* entries;
          },
          append: async (more) => void appended.push(...more),
          close: async () => undefined,
        };
      },
      list: async () => [],
      delete: async () => undefined,
    };
  }

  /** The memory store, through which entries get lost on their way back. */
  function losing(missing: readonly number[]): LogStore {
    const store = memoryStore();
    return {
      ...store,
      async open(id) {
        const handle = await store.open(id);
        const read = async function* () {
          for await (const entry of handle.read()) if (!missing.includes(entry.seq)) yield entry;
        };
        return { ...handle, read };
      },
    };
  }

  const without = (missing: readonly number[]) => log.filter(({ seq }) => !missing.includes(seq));

  test('H-138 is refused as a gap by every store, whichever is missing, and nothing is written', async () => {
    for (const missing of MISSING) {
      const own = giving(without(missing));
      expect([missing, await open(own), own.appended]).toEqual([missing, 'gap', []]);
      const memory = losing(missing);
      await write(memory, 'c', log);
      expect([missing, await open(memory)]).toEqual([missing, 'gap']);
      const { store, path } = await place();
      await write(store, 'c', log);
      const lines = (await readFile(path('c.jsonl'), 'utf8')).split('\n');
      const holed = lines.filter((_, line) => !missing.includes(line - 1)).join('\n');
      await writeFile(path('c.jsonl'), holed);
      expect([missing, await open(store)]).toEqual([missing, 'gap']);
      expect(await readFile(path('c.jsonl'), 'utf8')).toBe(holed);
    }
  });

  test('H-138 is named with the expected and the received value, and its handle is released', async () => {
    const store = losing([2, 3]);
    await write(store, 'c', log);
    const agent = createAgent({ model: scriptedModel([]), store });
    for (let time = 0; time < 2; time += 1) {
      await expect(agent.open('c')).rejects.toMatchObject({ name: 'CorruptLogError', code: 'gap' });
      await expect(agent.open('c')).rejects.toThrow('of conversation "c" goes on with entry 4, expected entry 2;');
    }
    await agent.close();
  });

  test('is not forked, and leaves nothing of the fork', async () => {
    const store = losing([2]);
    await write(store, 'c', log);
    await expect(forkConversation(store, 'c', 'd')).rejects.toMatchObject({ code: 'gap' });
    await expect(forkConversation(store, 'c', 'd', 2)).rejects.toMatchObject({ code: 'gap' });
    expect((await store.list()).map(({ id }) => id)).toEqual(['c']);
  });

  test('H-137 an entry that comes twice, or late, is refused as a fork of the log', async () => {
    const [head, one, two] = log as [LogEntry, LogEntry, LogEntry];
    expect(await open(giving([head, one, one, two]))).toBe('fork');
    expect(await open(giving([head, one, two, head]))).toBe('fork');
    expect(await open(giving([head, two, one]))).toBe('gap');
    expect(await open(giving([head, { ...one, seq: Number.NaN }]))).toBe('gap');
  });
});
