/**
 * Logs of released versions, as they were written then. Rule: what a version wrote stays in fixtures/v<version> and is
 * never written anew; beside each log stand the entries it must give.
 */
import { cp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { createAgent, defineTool, forkConversation, type Model, subAgents } from '../../src/index.ts';
import { project } from '../../src/projector/index.ts';
import { readDamagedLog } from '../../src/stores/jsonl/lenient.ts';
import { VERSION } from '../../src/stores/jsonl/versions.ts';
import { scriptedModel } from '../../src/testing/scriptedModel.ts';
import { all, notice, opened, refused } from '../../src/testing/storeSuite/storeCase.ts';
import { noticeCodes, type Place, place } from './place.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');

/** A version to come: texts of notices are called `said`, and records without a code are none. Off until a test asks. */
const next = vi.hoisted(() => ({ on: false }));
vi.mock('../../src/stores/jsonl/versions.ts', async (original) => {
  const now = await original<typeof import('../../src/stores/jsonl/versions.ts')>();
  const step = ({ text, ...rest }: { [key: string]: unknown }) => {
    if (rest.type === 'notice' && rest.code === undefined) throw new Error('a notice without a code');
    return rest.type === 'notice' ? { ...rest, said: text } : { ...rest, ...(text !== undefined && { text }) };
  };
  const upgrades = new Map([...now.UPGRADES, [now.VERSION, step]]);
  return {
    get VERSION() {
      return next.on ? now.VERSION + 1 : now.VERSION;
    },
    get UPGRADES() {
      return next.on ? upgrades : now.UPGRADES;
    },
  };
});
/** Does this with the store of the version to come. */
async function later<T>(use: () => Promise<T>): Promise<T> {
  next.on = true;
  try {
    return await use();
  } finally {
    next.on = false;
  }
}

async function entriesOf(version: string, id: string): Promise<LogEntry[]> {
  return JSON.parse(await readFile(join(FIXTURES, version, `${id}.entries.json`), 'utf8'));
}

/** A place with the logs of a version. */
async function placeOf(version: string): Promise<Place> {
  const found = await place();
  await cp(join(FIXTURES, version), found.directory, { recursive: true });
  return found;
}

const versions = await readdir(FIXTURES).then((names) => names.filter((name) => /^v\d+$/.test(name)));
const logs = await Promise.all(
  versions.map(async (version) => {
    const names = await readdir(join(FIXTURES, version));
    return names.filter((name) => name.endsWith('.jsonl')).map((name) => [version, name.slice(0, -6)] as const);
  }),
).then((found) => found.flat());

describe('H-140, B23: a log of a released version', () => {
  test('is there for every version but those to come', () => {
    expect(versions).toContain('v1');
    expect(logs.length).toBeGreaterThanOrEqual(5 * versions.length);
  });

  test.each(logs)(
    '%s %s opens with its entries, is left as it is until an append, and goes on',
    async (version, id) => {
      const { store, path } = await placeOf(version);
      const expected = await entriesOf(version, id);
      const before = await readFile(path(`${id}.jsonl`));
      const more = notice(id, expected.length, 'more');
      await opened(store, id, async (handle) => {
        expect(await all(handle)).toEqual(expected);
        expect((await readFile(path(`${id}.jsonl`))).equals(before)).toBe(true);
        await handle.append([more], expected.length);
      });
      const after = await readFile(path(`${id}.jsonl`), 'utf8');
      const whole = before.toString().slice(0, before.toString().lastIndexOf('\n') + 1);
      expect(after.startsWith(whole)).toBe(true);
      await opened(store, id, async (handle) => expect(await all(handle)).toEqual([...expected, more]));
    },
  );

  test('v1 lists what waits, what ended and what its process left', async () => {
    const { store } = await placeOf('v1');
    const listed = new Map((await store.list()).map((info) => [info.id, info]));
    expect(listed.get('waiting')).toMatchObject({ status: 'waiting', turns: 1, cwd: '/home/case', costUsd: null });
    expect(listed.get('approved')).toMatchObject({ status: 'idle', turns: 2, lastCause: 'end_turn' });
    expect(listed.get('died')).toMatchObject({ status: 'idle', turns: 1 });
  });

  test('v1 is a conversation that goes on: what waits still waits, what may have run is unknown, images are there', async () => {
    const { store } = await placeOf('v1');
    const shown: string[] = [];
    const model: Model = {
      id: 'later',
      async *stream({ messages }) {
        for (const part of messages[0]?.content ?? []) shown.push(part.type === 'image' ? part.mediaType : part.text);
        yield { type: 'text-delta', text: 'fine' };
        yield { type: 'finish', reason: 'stop' };
      },
    };
    const agent = createAgent({ model, store });
    const waiting = await agent.open('waiting');
    expect(waiting.pending).toMatchObject([{ callId: 'call_2', name: 'transfer', suspension: 1 }]);
    const died = await agent.open('died');
    expect([died.status, died.log().at(-1)]).toMatchObject(['idle', { type: 'run-stop', cause: 'crash' }]);
    expect(died.unsettled).toMatchObject([{ callId: 'call_1' }]);
    const approved = await agent.open('approved');
    expect(await approved.send('and now?').text).toBe('fine');
    expect(shown).toEqual(['What is this? Then pay the rent.', 'image/png']);
    await agent.close();
  });

  test('v1 goes on with its sub-agents: whose they are is read as it is written today, and what waits in one is decided', async () => {
    const { store } = await placeOf('v1');
    const old = await entriesOf('v1', 'family');
    const told = (entries: readonly LogEntry[]) =>
      entries.flatMap((entry) => (entry.type === 'sub-agent' ? [[entry.conversationId, entry.child]] : []));
    const children = old.flatMap((entry) => (entry.type === 'sub-agent' ? [entry.conversationId] : []));
    const today = children.map((child) => ['family', child]);
    expect(new Set(children).size).toBe(2);
    const publish = defineTool({
      name: 'publish',
      description: 'Publishes.',
      parameters: z.object({ page: z.string() }),
      needsApproval: true,
      execute: ({ page }) => `${page} is live`,
    });
    const agent = createAgent({ model: scriptedModel(['out', 'done']), store, tools: [publish, subAgents()] });
    await forkConversation(store, 'family', 'fork', old.length);
    const family = await agent.open('family');
    expect(told(family.log())).toEqual(today);
    expect(family.pending).toMatchObject([{ callId: 'x', path: ['p', 'x'] }]);
    await family.decide({ callId: 'x', action: 'approve' });
    expect((await family.resume().result).text).toBe('done');
    expect(told(family.log())).toEqual([...today, ['family', children[1]]]);
    expect(project(family.log()).diagnostics).toEqual([]);
    expect(project([...old, ...family.log(old.length)])).toEqual(project(family.log()));
    const fork = await agent.open('fork');
    expect(told(fork.log()).map(([of, child]) => [of, children.includes(child ?? '')])).toEqual(
      today.map(() => ['fork', false]),
    );
    expect(fork.pending).toMatchObject([{ callId: 'x', path: ['p', 'x'] }]);
    await agent.close();
  });
});

describe('H-140 a version to come', () => {
  test('brings older records up to itself as it reads them, and leaves them as they are in the file', async () => {
    const { store, path, directory } = await placeOf('v1');
    const before = await readFile(path('texts.jsonl'), 'utf8');
    const old = await entriesOf('v1', 'texts');
    const upgraded = old.map((entry) => {
      if (entry.type !== 'notice') return entry;
      const { text, ...rest } = entry;
      return { ...rest, said: text };
    });
    const fresh = { ...notice('texts', old.length), text: undefined, said: 'new' } as unknown as LogEntry;
    await later(() =>
      opened(store, 'texts', async (handle) => {
        expect(await all(handle)).toEqual(upgraded);
        expect(await readFile(path('texts.jsonl'), 'utf8')).toBe(before);
        await handle.append([fresh], old.length);
        await handle.append([{ ...fresh, seq: old.length + 1 }], old.length + 1);
      }),
    );
    const after = await readFile(path('texts.jsonl'), 'utf8');
    const [marker, ...added] = after.slice(before.length).split('\n');
    expect(after.startsWith(before)).toBe(true);
    expect(JSON.parse(marker ?? '')).toEqual({ format: 'runchart-log', version: VERSION + 1, conversationId: 'texts' });
    expect(added.length).toBe(3);
    const both = [0, 1].map((more) => expect.objectContaining({ seq: old.length + more, said: 'new' }));
    await later(() =>
      opened(store, 'texts', async (handle) => {
        expect([handle.notices, await all(handle)]).toEqual([[], [...upgraded, ...both]]);
        expect(await all(handle, old.length)).toEqual(both);
        expect(await all(handle, old.length - 1)).toEqual([upgraded.at(-1), ...both]);
      }),
    );
    const read: LogEntry[] = [];
    await later(async () => {
      for await (const entry of readDamagedLog(directory, 'texts')) read.push(entry);
    });
    expect(read).toEqual([...upgraded, ...both]);
  });

  test('is refused by the version before it, at the line where it begins, and the file is left as it is', async () => {
    const { store, path } = await placeOf('v1');
    await later(() => opened(store, 'died', (handle) => handle.append([notice('died', 10)], 10)));
    const after = await readFile(path('died.jsonl'), 'utf8');
    const line = after.split('\n').findIndex((text) => text.includes(`"version":${VERSION + 1}`)) + 1;
    expect(line).toBe(12);
    await expect(store.open('died')).rejects.toMatchObject({ code: 'version', line });
    expect(await readFile(path('died.jsonl'), 'utf8')).toBe(after);
  });

  test('begins new logs with its own header, and mends a torn end before it goes on', async () => {
    const { store, path } = await placeOf('v1');
    await later(async () => {
      await opened(store, 'new', (handle) => handle.append([notice('new', 0)], 0));
      await opened(store, 'died', async (handle) => {
        expect(noticeCodes(handle)).toEqual(['torn_tail']);
        await handle.append([notice('died', 10)], 10);
      });
      await opened(store, 'died', async (handle) => expect(handle.notices).toEqual([]));
    });
    expect(JSON.parse((await readFile(path('new.jsonl'), 'utf8')).split('\n')[0] ?? '')).toMatchObject({
      version: VERSION + 1,
    });
    await refused('version', () => store.open('new'));
  });

  test('refuses an older record that its step can make nothing of, with its line', async () => {
    const { store } = await placeOf('v1');
    // Behind the first header, and the one of today's version.
    await opened(store, 'waiting', async (handle) => {
      const { length } = await all(handle);
      const { code: _, ...bare } = notice('waiting', length) as LogEntry & { code: string };
      await handle.append([bare as LogEntry], length);
      await handle.close();
      await expect(later(() => store.open('waiting'))).rejects.toMatchObject({ code: 'corrupt', line: length + 3 });
    });
  });
});
