/** Tests how an append of the JSONL store changes its file, and which appends are refused. */
import { copyFile, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { createAgent, defineTool, type LogEntry } from '../../src/index.ts';
import { jsonlStore } from '../../src/stores/jsonl/jsonlStore.ts';
import { VERSION } from '../../src/stores/jsonl/lineFormat.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import {
  all,
  conversation,
  modelReply,
  notice,
  notices,
  opened,
  refused,
  stamped,
  stored,
  write,
} from '../../src/testing/storeSuite/storeCase.ts';
import { call, during, finish, scripted } from '../support/scriptedReplies.ts';
import { fileHandle } from './failingDisk.ts';
import { contentOf, place } from './storeDirectory.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

describe('the written lines', () => {
  test('CKPT-3 CKPT-5 an append is one write of whole lines, without the earlier ones', async () => {
    const { store } = await place();
    await opened(store, 'c', async (handle) => {
      await handle.append(notices('c', 0, 50), 0);
      const writes = vi.spyOn(fileHandle, 'write');
      await handle.append(notices('c', 50, 3), 50);
      await handle.append([notice('c', 53)], 53);
      const written = writes.mock.calls.map(([bytes]) => String(bytes));
      expect(written.map((text) => text.split('\n').length - 1)).toEqual([3, 1]);
      expect(written.every((text) => text.endsWith('\n') && text.length < 400)).toBe(true);
    });
  });

  test('TRC-4 a message is in the file before its effects start: the model call, the tool, the next model call', async () => {
    const found = await place();
    const typesSeen: string[][] = [];
    const look = async (): Promise<void> => {
      const lines = (await contentOf(found)).trimEnd().split('\n');
      const entries = lines.map((line) => JSON.parse(line) as { type?: string });
      typesSeen.push(entries.flatMap(({ type }) => (type === undefined || type === 'checkpoint' ? [] : [type])));
    };
    const echo = defineTool({
      name: 'echo',
      description: 'Echoes.',
      parameters: z.object({}),
      execute: async () => {
        await look();
        return 'echoed';
      },
    });
    const calls = [call('c1', 'echo', {}), finish('tool-calls')];
    const agent = createAgent({
      model: scripted([during(look, calls), during(look, 'done')]),
      tools: [echo],
      store: found.store,
    });
    const open = await agent.open('c');
    await open.send('hi').result;
    await look();
    const [asked = [], ran = [], again = [], end = []] = typesSeen;
    expect(asked).toEqual(['conversation', 'run-started', 'user-message']);
    expect(ran).toEqual([...asked, 'agent-output', 'model-reply', 'tool-started']);
    expect(again).toEqual([...ran, 'tool-result']);
    expect(end).toEqual([...again, 'agent-output', 'model-reply', 'run-stop']);
    await agent.close();
  });

  test('a line omits the fields of its header: the conversation, the run and the start time', async () => {
    const found = await place();
    const of = (seq: number, runId: string) => stamped('c', seq, { type: 'run-started', runId });
    const entries = [notice('c', 0, 'x'), of(1, 'r'), of(2, 'r'), notice('c', 3, 'y'), of(4, 'r'), of(5, 's')];
    await write(found.store, 'c', entries.slice(0, 3));
    await opened(found.store, 'c', async (handle) => {
      await Promise.all([handle.append(entries.slice(3, 5), 3), handle.append(entries.slice(5), 5)]);
      expect(await all(handle, 4)).toEqual(entries.slice(4));
    });
    const header = { format: 'runchart-log', version: VERSION, conversationId: 'c' };
    expect((await contentOf(found)).split('\n').map((line) => line && JSON.parse(line))).toEqual([
      header,
      { seq: 0, at: 1_700_000_000_000, type: 'notice', code: 'case', text: 'x' },
      { ...header, runId: 'r', at: 1_700_000_001_000 },
      { seq: 1, type: 'run-started' },
      { seq: 2, at: 1000, type: 'run-started' },
      { seq: 3, at: 2000, runId: null, type: 'notice', code: 'case', text: 'y' },
      { seq: 4, at: 3000, type: 'run-started' },
      { ...header, runId: 's', at: 1_700_000_005_000 },
      { seq: 5, type: 'run-started' },
      '',
    ]);
    expect(await stored(found.store, 'c')).toEqual(entries);
  });

  test('a line has short forms of token counts, a single text and the key of a call, and each value is read back unchanged', async () => {
    const found = await place();
    const key = (callId: string, idempotencyKey: string) =>
      stamped('c', 0, { type: 'tool-started', runId: 'r', callId, idempotencyKey });
    const result = (content: unknown) =>
      stamped('c', 0, { type: 'tool-result', runId: 'r', callId: 'x', outcome: 'succeeded', content } as never);
    const usages = [
      {},
      { inputTokens: 0, outputTokens: 0 },
      { reasoningTokens: 7 },
      { more: 1 },
      { inputTokens: null },
    ];
    const contents = [[{ type: 'text', text: 'a' }], [{ type: 'text', text: 'a', more: 1 }], [], 'a', [null], [['a']]];
    const keys = [
      key('x', 'c/x/0'),
      key('x', 'c/x/12'),
      key('x', 'c/x/012'),
      key('x', 'c/x/'),
      key('x', 'own'),
      key('', 'c//1'),
    ];
    const replies = usages.map((counts) => modelReply('c', 0, null, counts as never));
    const entries = [...replies, ...contents.map(result), ...keys].map((entry, seq) => ({
      ...entry,
      seq,
      at: seq / 3,
    }));
    await write(found.store, 'c', entries);
    expect(await stored(found.store, 'c')).toEqual(entries);
    const lines = (await contentOf(found)).split('\n');
    const linesWith = (text: string) => lines.filter((line) => line.includes(text)).length;
    expect([linesWith('"tokens":[9,3]'), linesWith('"tokens":[]'), linesWith('"tokens":[9,3,0,0,7]')]).toEqual([
      1, 1, 1,
    ]);
    expect([
      linesWith('"onlyText":"a"'),
      linesWith('"suspensions":12'),
      linesWith('"idempotencyKey":"c/x/012"'),
    ]).toEqual([1, 1, 1]);
  });

  test.each([
    ['parts of a millisecond', [1_700_000_000_000.1, 1_700_000_000_000.3, 1_700_000_000_001.7, 1_700_000_000_002]],
    ['near zero', [0, 0.1, 0.2, 0.3, 0.7, 1e-9]],
    ['that go backwards', [0.7, 0.1, -0.3, -1_700_000_000_000.2]],
    ['far apart', [0.1, 1e300, -1e300, Number.MAX_SAFE_INTEGER, Number.MIN_VALUE, 3]],
    ['whole, then parts', [1_700_000_000_000, 1_700_000_000_123.456, 1_700_000_000_124]],
    ['whole, then far from it', [1_700_000_000_000, 0.1, 1e-9, 5e-324, -0.7, 1e300, 1_700_000_000_000.5]],
    ['small, then far from it', [3, 1e300, 0.1, 1_700_000_000_000.1, 0.3]],
  ])('the times of a run are read back unchanged: %s', async (_, times) => {
    for (const runId of ['r', null]) {
      const { store } = await place();
      const entries = times.map(
        (at, seq) => ({ ...stamped('c', seq, { type: 'run-started', runId }), at }) as LogEntry,
      );
      await write(store, 'c', entries);
      expect(await stored(store, 'c')).toEqual(entries);
    }
  });

  test("an entry of another conversation keeps that conversation's id", async () => {
    const { store } = await place();
    await write(store, 'c', [conversation('c'), notice('other', 1)]);
    expect(await stored(store, 'c')).toEqual([conversation('c'), notice('other', 1)]);
  });

  test("an append is acknowledged after the disk has it with durability 'power', after the write with 'process'", async () => {
    const { directory } = await place();
    const sync = vi.spyOn(fileHandle, 'datasync');
    await write(jsonlStore(directory), 'c', [notice('c', 0)]);
    expect(sync).not.toHaveBeenCalled();
    await opened(jsonlStore(directory, { durability: 'power' }), 'c', async (handle) => {
      await handle.append([notice('c', 1)], 1);
      await handle.append([notice('c', 2)], 2);
    });
    expect(sync).toHaveBeenCalledTimes(2);
  });
});

describe('entries that could not be read back', () => {
  const without = { ...notice('c', 0), type: undefined } as unknown as LogEntry;
  const odd: [what: string, entry: LogEntry][] = [
    ['the time NaN', { ...notice('c', 0), at: Number.NaN }],
    ['the time Infinity', { ...notice('c', 0), at: Number.POSITIVE_INFINITY }],
    ['a time that is a text', { ...notice('c', 0), at: '5' as unknown as number }],
    ['no type', without],
    ['a run id that is a number', { ...notice('c', 0), runId: 7 as unknown as string }],
  ];
  for (const [what, entry] of odd) {
    test(`an entry with ${what} is refused before a byte is written, and the next one is stored`, async () => {
      const { store } = await place();
      await opened(store, 'c', async (handle) => {
        await refused('store', () => handle.append([entry], 0));
        await handle.append([notice('c', 0)], 0);
      });
      expect(await stored(store, 'c')).toEqual([notice('c', 0)]);
    });
  }

  test('a clock without a valid time opens nothing, and another process can open the log afterwards', async () => {
    for (const now of [() => Number.NaN, () => '5' as unknown as number]) {
      const { store } = await place();
      const model = scriptedModel(['yes', 'yes']);
      await refused('store', () => createAgent({ model, store, cwd: '/', ports: { now } }).open('c'));
      const agent = createAgent({ model, store, cwd: '/' });
      expect(await (await agent.open('c')).send('go').result).toMatchObject({ termination: 'NaturalEnd' });
      await agent.close();
    }
  });
});

describe('a file that another program changes', () => {
  const changes: [name: string, change: (path: string) => Promise<unknown>][] = [
    ['deleted', (path) => rm(path)],
    ['replaced by another', (path) => writeFile(`${path}.new`, 'x').then(() => rename(`${path}.new`, path))],
    [
      'moved away and replaced by a copy',
      (path) => rename(path, `${path}.old`).then(() => copyFile(`${path}.old`, path)),
    ],
    ['longer', (path) => writeFile(path, 'x\n', { flag: 'a' })],
    ['shorter', (path) => truncate(path, 10)],
  ];
  for (const [name, change] of changes) {
    test(`H-156 an append to a file that was ${name} is a store conflict, and changes nothing`, async () => {
      const { store, path } = await place();
      const handle = await store.open('c');
      await handle.append([notice('c', 0)], 0);
      await change(path('c.jsonl'));
      const before = await readFile(path('c.jsonl'), 'utf8').catch(() => 'deleted');
      await expect(handle.append([notice('c', 1)], 1)).rejects.toThrow('the store changed');
      await refused('store_conflict', () => handle.append([notice('c', 1)], 1));
      await handle.close();
      expect(await readFile(path('c.jsonl'), 'utf8').catch(() => 'deleted')).toBe(before);
    });
  }

  test('H-156 a read of a file that another program has cut or damaged rejects', async () => {
    const { store, path } = await place();
    const handle = await store.open('c');
    await handle.append(notices('c', 0, 3), 0);
    const whole = await readFile(path('c.jsonl'), 'utf8');
    await truncate(path('c.jsonl'), whole.length - 20);
    await refused('corrupt', () => all(handle));
    await writeFile(path('c.jsonl'), whole.replace('entry 1', '\nentry'));
    await refused('corrupt', () => all(handle));
    await writeFile(path('c.jsonl'), whole);
    expect(await all(handle)).toEqual(notices('c', 0, 3));
    await handle.close();
  });
});
