/** Tests that the log of a conversation contains the faults that its opening tolerated. */
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { type Conversation, createAgent, type LogStore, memoryStore } from '../../src/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { conversation, notices, stored, write } from '../../src/testing/storeSuite/storeCase.ts';
import { type Place, place, placeWith } from './storeDirectory.ts';

/** Opens conversation `c` as a process of its own. */
async function openedBy<T>(store: LogStore, use: (conversation: Conversation) => T | Promise<T>): Promise<T> {
  const agent = createAgent({ model: scriptedModel(['yes']), store, cwd: '/' });
  try {
    return await use(await agent.open('c'));
  } finally {
    await agent.close();
  }
}

const codes = (c: Conversation): string[] => c.log().flatMap((each) => (each.type === 'diagnostic' ? [each.code] : []));
/** The seq the next entry of `c` will have. */
async function due({ path }: Place): Promise<number> {
  return (await readFile(path('c.jsonl'), 'utf8')).split('\n').length - 2;
}

describe('a notice of a store is a diagnostic of the conversation', () => {
  const tails: [code: string, tail: (next: number) => string][] = [
    ['torn_tail', (next) => `{"seq":${next},"at`],
    ['zero_bytes', () => '\0\0\0'],
    ['blank_tail', () => '\n\n'],
  ];
  for (const [code, tail] of tails) {
    const append = async (found: Place) => appendFile(found.path('c.jsonl'), tail(await due(found)));
    test(`H-130 H-134 ${code}: logged once for each occurrence, before any other entry`, async () => {
      const found = await place();
      await openedBy(found.store, (c) => c.send('one').result);
      await append(found);
      await openedBy(found.store, (c) => {
        expect(codes(c)).toEqual([code]);
        expect(c.view().diagnostics).toMatchObject([{ code }]);
        expect(c.log().at(-1)).toMatchObject({ type: 'diagnostic', runId: null });
      });
      await openedBy(found.store, (c) => expect(codes(c)).toEqual([code]));
      await append(found);
      await openedBy(found.store, async (c) => {
        expect(codes(c)).toEqual([code, code]);
        expect(await c.send('two').result).toMatchObject({ termination: 'NaturalEnd' });
      });
    });
  }

  test('H-141 a lone newline is a new conversation with a diagnostic', async () => {
    const { store } = await placeWith('\n');
    await openedBy(store, (c) => expect(c.log().map(({ type }) => type)).toEqual(['conversation', 'diagnostic']));
  });

  test('H-136 damage that stays in the file is logged once, not at every opening', async () => {
    const found = await place();
    await openedBy(found.store, (c) => c.send('one').result);
    const text = await readFile(found.path('c.jsonl'), 'utf8');
    const last = text.trimEnd().split('\n').at(-1);
    await writeFile(found.path('c.jsonl'), `${text}${last}\n`);
    for (let time = 0; time < 3; time += 1) {
      await openedBy(found.store, (c) => expect(codes(c)).toEqual(['duplicate']));
    }
  });
});

test('a log without damage is opened without a diagnostic', async () => {
  const { store } = await place();
  await openedBy(store, (c) => c.send('one').result);
  await openedBy(store, (c) => expect(codes(c)).toEqual([]));
});

test('a conversation that is opened for reading is not written to, whatever its store tolerated', async () => {
  const inner = memoryStore();
  const parent = { conversationId: 'p', callId: 'k' };
  await write(inner, 'c', [conversation('c', parent), ...notices('c', 1, 1)]);
  const store: LogStore = {
    ...inner,
    open: async (id) => Object.assign(await inner.open(id), { notices: [{ code: 'torn_tail' }] }),
  };
  await openedBy(store, (c) => expect(codes(c)).toEqual([]));
  expect(await stored(inner, 'c')).toHaveLength(2);
});
