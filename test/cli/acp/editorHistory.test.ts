/** Sessions that an editor opens again: lists, replays, and the sessions of a killed or closed editor. */
import { EventEmitter, once } from 'node:events';
import { mkdir, readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { client, ndJsonStream } from '@agentclientprotocol/sdk';
import { describe, expect, test } from 'vitest';
import { EditorAgent, type EditorAgentOptions } from '../../../src/cli/acp/editorAgent.ts';
import { sessionPlace } from '../../../src/cli/sessions/sessionPlace.ts';
import { FileHistory } from '../../../src/cli/undo/fileHistory.ts';
import { jsonlStore } from '../../../src/stores/jsonl/jsonlStore.ts';
import { stamped, write } from '../../../src/testing/storeSuite/storeCase.ts';
import { call, deaf, type Reply, scripted, t } from '../../support/scriptedReplies.ts';
import { agentMaker, begun, choose, editorOf, textIn, updatesOf } from './acpClient.ts';

const deploys = (to: string, id = 'c1'): Reply => [call(id, 'Deploy', { to })];

describe('an earlier session', () => {
  test('is listed with title and time, and a replay shows messages, calls and results in their order', async () => {
    const first = await begun([deploys('one'), 'done'], { answer: choose('once') });
    const { root, sessionId } = first;
    await first.prompt('deploy it');
    await first.disconnect();
    const second = await begun(['more'], { root });
    const { sessions } = await second.agent.request('session/list', { cwd: root });
    expect(sessions).toEqual([{ sessionId, cwd: root, title: 'deploy it', updatedAt: expect.stringContaining('T') }]);
    const { modes } = await second.agent.request('session/load', { sessionId, cwd: root, mcpServers: [] });
    expect(modes?.currentModeId).toBe('default');
    const kinds = second.updates.map(({ sessionUpdate }) => sessionUpdate);
    expect(kinds.slice(0, 2)).toEqual(['user_message_chunk', 'tool_call']);
    expect(textIn(second.updates, 'user_message_chunk')).toBe('deploy it');
    expect(updatesOf(second.updates, 'c1').at(-1)).toMatchObject({ status: 'completed' });
    expect(textIn(second.updates)).toBe('done');
    second.updates.length = 0;
    const again = await second.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'and?' }] });
    expect(again).toEqual({ stopReason: 'end_turn' });
    expect(textIn(second.updates)).toBe('more');
    expect(second.ran).toEqual([]);
  });

  test.each([0, 1, 49, 50, 51, 99, 120])(
    'is found in the pages of the list, also among sessions without a message: %i of 120 have one',
    async (count) => {
      const { root, agent } = await begun([]);
      const store = jsonlStore(join(root, 'sessions'));
      const named: string[] = [];
      for (let at = 0; at < 120; at += 1) {
        // Spread evenly over the list.
        const isNamed = Math.floor(((at + 1) * count) / 120) > Math.floor((at * count) / 120);
        const id = `s${String(at).padStart(3, '0')}`;
        const first = stamped(id, 0, { type: 'conversation', schema: 1, cwd: root, createdAt: 1 });
        const content = [{ type: 'text' as const, text: 'hi' }];
        const message = stamped(id, 1, { type: 'user-message', messageId: 'm', kind: 'direct', content });
        await write(store, id, isNamed ? [first, message] : [first]);
        if (isNamed) named.push(id);
      }
      const found: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = await agent.request('session/list', { cwd: root, ...(cursor !== undefined && { cursor }) });
        found.push(...page.sessions.map(({ sessionId }) => sessionId));
        cursor = page.nextCursor ?? undefined;
        if (cursor === undefined) break;
      }
      expect(found.sort()).toEqual(named);
    },
  );

  test('is listed for its directory, whatever path leads there', async () => {
    const { agent, prompt, root, sessionId } = await begun(['hi']);
    await prompt('hello');
    await mkdir(join(root, 'sub'));
    await symlink(root, join(root, 'link'));
    for (const cwd of [root, `${root}/`, join(root, 'link'), `${root}/sub/..`]) {
      const { sessions } = await agent.request('session/list', { cwd });
      expect(sessions.map((each) => each.sessionId)).toEqual([sessionId]);
    }
  });

  test('a resumed session is not replayed, a closed one is not open, a deleted one is gone', async () => {
    const first = await begun(['hi']);
    const { root, sessionId } = first;
    await first.prompt('hello');
    await first.disconnect();
    const { agent, updates } = await begun([], { root });
    await agent.request('session/resume', { sessionId, cwd: root, mcpServers: [] });
    expect(updates).toEqual([]);
    await agent.request('session/close', { sessionId });
    const closed = agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text: 'x' }] });
    await expect(closed).rejects.toMatchObject({ code: -32002 });
    await agent.request('session/delete', { sessionId });
    expect((await agent.request('session/list', {})).sessions).toEqual([]);
    const gone = agent.request('session/load', { sessionId, cwd: root, mcpServers: [] });
    await expect(gone).rejects.toMatchObject({ code: -32002 });
  });

  test('a deleted session takes with it what its files were', async () => {
    const { root, sessionId, agent, prompt, makeAgent } = await begun(['hi']);
    await prompt('hello');
    await agent.request('session/close', { sessionId });
    const made = await makeAgent(root);
    const conversation = await made.agent.open(sessionId);
    const message = conversation.log().find((entry) => entry.type === 'user-message');
    await made.close();
    const history = new FileHistory(made.sessions.history);
    const place = { kind: 'place' as const, root, path: join(root, 'f.txt'), name: 'f.txt', type: 'missing' as const };
    await history.before(message?.messageId ?? '', 'key', place);
    expect(await history.changes(message?.messageId ?? '')).toHaveLength(1);
    await agent.request('session/delete', { sessionId });
    expect(await readdir(history.directory)).toEqual([]);
  });

  test('messages that a rewind has superseded are not replayed', async () => {
    const first = await begun(['one', 'two']);
    const { root, sessionId, makeAgent } = first;
    await first.prompt('first');
    await first.prompt('second');
    await first.disconnect();
    const made = await makeAgent(root);
    const conversation = await made.agent.open(sessionId);
    const message = conversation
      .log()
      .filter(({ type }) => type === 'user-message')
      .at(-1);
    if (message?.type !== 'user-message') throw new Error('no message');
    await conversation.rewind(message.messageId);
    await made.close();
    const { agent, updates } = await begun([], { root });
    await agent.request('session/load', { sessionId, cwd: root, mcpServers: [] });
    expect(textIn(updates, 'user_message_chunk')).toBe('first');
    expect(textIn(updates)).toBe('one');
  });

  test('a session of another directory, an unknown one and a name that is a path are refused by their codes', async () => {
    const first = await begun(['hi']);
    const { root, sessionId } = first;
    await first.prompt('hello');
    await first.disconnect();
    await mkdir(join(root, 'other'));
    const { agent } = await begun([], { root });
    const load = (sessionId: string, cwd: string) => agent.request('session/load', { sessionId, cwd, mcpServers: [] });
    await expect(load(sessionId, join(root, 'other'))).rejects.toMatchObject({ code: -32602 });
    await expect(load('nobody', root)).rejects.toMatchObject({ code: -32002, data: { sessionId: 'nobody' } });
    await expect(load('../../etc/passwd', root)).rejects.toMatchObject({ code: -32002 });
    await expect(load(sessionId, 'relative')).rejects.toMatchObject({ code: -32602 });
    const missing = agent.request('session/new', { cwd: join(root, 'missing'), mcpServers: [] });
    await expect(missing).rejects.toMatchObject({ code: -32602 });
  });
});

test('a load that is refused leaves the session open', async () => {
  const { agent, prompt, root, sessionId } = await begun(['hi', 'still here']);
  await prompt('hello');
  await mkdir(join(root, 'other'));
  for (const cwd of ['relative', join(root, 'missing'), join(root, 'other')]) {
    const load = agent.request('session/load', { sessionId, cwd, mcpServers: [] });
    await expect(load).rejects.toMatchObject({ code: -32602 });
  }
  expect(await prompt('again')).toEqual({ stopReason: 'end_turn' });
});

describe('an editor that is gone', () => {
  test('in the middle of a reply: the run is stopped, and the session can be opened at once', async () => {
    const first = await begun([deaf(t('Let me think'))]);
    const { root, sessionId } = first;
    const prompted = first.prompt('go').catch(() => 'closed');
    await expect.poll(() => textIn(first.updates), { interval: 5 }).toBe('Let me think');
    await first.disconnect();
    expect(await prompted).toBe('closed');
    const { agent, updates } = await begun([], { root });
    await agent.request('session/load', { sessionId, cwd: root, mcpServers: [] });
    expect(textIn(updates, 'user_message_chunk')).toBe('go');
  });

  test('while a call waits: it still waits, is asked about before the next prompt, and runs once', async () => {
    const first = await begun([deploys('one')]);
    const { root, sessionId } = first;
    first.prompt('deploy').catch(() => undefined);
    await expect.poll(() => first.asked.length, { interval: 5 }).toBe(1);
    const { store } = await sessionPlace(join(root, 'sessions'));
    await expect.poll(async () => (await store.list())[0]?.status, { interval: 5 }).toBe('waiting');
    await first.disconnect();
    const second = await begun(['done', 'then this'], { root, answer: choose('once') });
    await second.agent.request('session/load', { sessionId, cwd: root, mcpServers: [] });
    expect(second.asked).toEqual([]);
    expect(updatesOf(second.updates, 'c1').at(-1)).toMatchObject({ status: 'pending' });
    const prompt = [{ type: 'text' as const, text: 'go on' }];
    expect(await second.agent.request('session/prompt', { sessionId, prompt })).toEqual({ stopReason: 'end_turn' });
    expect(second.asked).toHaveLength(1);
    expect(second.ran).toEqual(['one']);
    expect(second.model.calls).toHaveLength(2);
  });

  test('while a new file waits: its result is a diff, also in a session that is not replayed', async () => {
    const args = { file_path: 'new.txt', content: 'fresh\n' };
    const first = await begun([[call('c1', 'Write', args)]]);
    const { root, sessionId } = first;
    first.prompt('write').catch(() => undefined);
    await expect.poll(() => first.asked.length, { interval: 5 }).toBe(1);
    const { store } = await sessionPlace(join(root, 'sessions'));
    await expect.poll(async () => (await store.list())[0]?.status, { interval: 5 }).toBe('waiting');
    await first.disconnect();
    const second = await begun(['done', 'then this'], { root, answer: choose('once') });
    await second.agent.request('session/resume', { sessionId, cwd: root, mcpServers: [] });
    const prompt = [{ type: 'text' as const, text: 'go on' }];
    await second.agent.request('session/prompt', { sessionId, prompt });
    const diff = { type: 'diff', path: join(root, 'new.txt'), oldText: null, newText: 'fresh\n' };
    expect(updatesOf(second.updates, 'c1').at(-1)).toMatchObject({ status: 'completed', content: [diff] });
  });

  test('a session that another process holds is refused, and is free after it', async () => {
    const { root, sessionId, prompt, disconnect } = await begun(['hi']);
    await prompt('hello');
    const model = scripted([]);
    const other = await editorOf(agentMaker(root, model), { root });
    const load = () => other.agent.request('session/load', { sessionId, cwd: root, mcpServers: [] });
    await expect(load()).rejects.toMatchObject({ code: -32603, data: { code: 'session_busy' } });
    await disconnect();
    await load();
  });
});

test('a session that is found only after its editor is gone is not left open', async () => {
  const first = await begun(['hi']);
  const { root, sessionId } = first;
  await first.prompt('hello');
  await first.disconnect();
  const place = await sessionPlace(join(root, 'sessions'));
  const moments = new EventEmitter();
  const has = async (id: string): Promise<boolean> => {
    const found = once(moments, 'found');
    moments.emit('asked');
    await found;
    return place.has(id);
  };
  const make = agentMaker(root, scripted([]));
  let ends = 0;
  const makeAgent: EditorAgentOptions['makeAgent'] = async (...args) => {
    const made = await make(...args);
    const close = async (): Promise<void> => {
      await made.close();
      ends += 1;
    };
    return { ...made, close };
  };
  const editor = new EditorAgent({ version: '0.0.0', place: { ...place, has }, makeAgent });
  const [toAgent, toClient] = [new TransformStream<Uint8Array>(), new TransformStream<Uint8Array>()];
  const served = editor.app.connect(ndJsonStream(toClient.writable, toAgent.readable));
  const connection = client({ name: 'test' }).connect(ndJsonStream(toAgent.writable, toClient.readable));
  await connection.agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
  const asked = once(moments, 'asked');
  const load = connection.agent.request('session/load', { sessionId, cwd: root, mcpServers: [] });
  load.catch(() => undefined);
  await asked;
  connection.close();
  served.close();
  await editor.close();
  moments.emit('found');
  await expect.poll(() => ends).toBe(1);
  await (await place.store.open(sessionId)).close();
});
