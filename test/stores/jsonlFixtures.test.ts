/**
 * Log files of each version of the format, as the store wrote them. Invariant: a file in fixtures/v<version> never
 * changes. The file beside it contains the entries that the store must read.
 */
import { cp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { LogEntry } from '../../machines/vocabulary.ts';
import { createAgent, defineTool, forkConversation, type Model, subAgents } from '../../src/index.ts';
import { project } from '../../src/projector/index.ts';
import { scriptedModel } from '../../src/testing/scriptedModel.ts';
import { all, notice, opened } from '../../src/testing/storeSuite/storeCase.ts';
import { type Place, place } from './storeDirectory.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');

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

describe('H-140, B23: a log file of a version', () => {
  test('exists for each version', () => {
    expect(versions).toContain('v1');
    expect(logs.length).toBeGreaterThanOrEqual(5 * versions.length);
  });

  test.each(logs)(
    '%s %s opens with its entries, stays unchanged until an append, and continues',
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

  test('the list shows waiting, ended and crashed conversations', async () => {
    const { store } = await placeOf('v1');
    const listed = new Map((await store.list()).map((info) => [info.id, info]));
    expect(listed.get('waiting')).toMatchObject({ status: 'waiting', turns: 1, cwd: '/home/case', costUsd: null });
    expect(listed.get('approved')).toMatchObject({ status: 'idle', turns: 2, lastCause: 'end_turn' });
    expect(listed.get('died')).toMatchObject({ status: 'idle', turns: 1 });
  });

  test('a conversation continues: a suspended call still waits, a call that may have run is unknown, images are readable', async () => {
    const { store } = await placeOf('v1');
    const shown: string[] = [];
    const model: Model = {
      id: 'later',
      async *stream({ messages }) {
        for (const part of messages[0]?.content ?? []) shown.push(part.type === 'text' ? part.text : part.mediaType);
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

  test('a conversation continues with its sub-agents: a call that waits in one is decided, and a fork has its own', async () => {
    const { store } = await placeOf('v1');
    const old = await entriesOf('v1', 'family');
    const subAgentsIn = (entries: readonly LogEntry[]) =>
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
    expect(subAgentsIn(family.log())).toEqual(today);
    expect(family.pending).toMatchObject([{ callId: 'x', path: ['p', 'x'] }]);
    await family.decide({ callId: 'x', action: 'approve' });
    expect((await family.resume().result).text).toBe('done');
    expect(subAgentsIn(family.log())).toEqual([...today, ['family', children[1]]]);
    expect(project(family.log()).diagnostics).toEqual([]);
    expect(project([...old, ...family.log(old.length)])).toEqual(project(family.log()));
    const fork = await agent.open('fork');
    expect(subAgentsIn(fork.log()).map(([of, child]) => [of, children.includes(child ?? '')])).toEqual(
      today.map(() => ['fork', false]),
    );
    expect(fork.pending).toMatchObject([{ callId: 'x', path: ['p', 'x'] }]);
    await agent.close();
  });
});
