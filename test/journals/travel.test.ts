/** The past of a conversation and its charts at any place, and forks from there. Nothing is executed. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { forkConversation } from '../../src/conversation/copies/fork.ts';
import { pastOf } from '../../src/conversation/timeTravel.ts';
import { createAgent, type LogEntry, memoryStore, subAgents } from '../../src/index.ts';
import { replayUntil } from '../../src/journals/index.ts';
import { jsonlStore } from '../../src/node.ts';
import { project } from '../../src/projector/index.ts';
import { childIdOf } from '../../src/subAgents/spawnTasks.ts';
import { askedTool, calls, call as made, scripted } from '../hostile/hostileAgent.ts';
import { bench, only, resultText } from '../support/agentBench.ts';
import { dot } from '../support/samplePictures.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, lines, t } from '../support/scriptedReplies.ts';
import { byTask, logOf, spawn, submit } from '../support/subAgentBench.ts';
import { recorded } from './recordedRun.ts';

const twoRequests = async () => {
  const { tool, ran } = echoTool();
  const on = await bench({ replies: [[call('c1', 'echo', { m: 'a' })], 'one', 'two'], tools: [tool] });
  await on.conversation.send('first').result;
  await on.conversation.send('second').result;
  return { ...on, ran };
};

describe('the past of a log', () => {
  it('equals at every place the projection and the model messages of its prefix', async () => {
    const { conversation, model, ran } = await twoRequests();
    const log = conversation.log();
    const requests = model.calls.map(({ messages }) => lines(messages).join('\n'));
    const seen = new Set<string>();
    for (let until = 0; until <= log.length; until++) {
      const past = pastOf(log, until);
      expect(past.until).toBe(until);
      expect(past.view).toEqual(project(log.slice(0, until)));
      seen.add(lines(past.messages).join('\n'));
    }
    for (const request of requests) expect(seen).toContain(request);
    expect(ran).toEqual(['c1']);
  });

  it('is refused for anything but a list of entries, and the error contains none of it', () => {
    for (const log of ['s3cret', { text: 's3cret' }, undefined]) {
      const read = () => pastOf(log as unknown as LogEntry[]);
      expect(read).toThrow(/a log must be a list of entries/);
      expect(read).not.toThrow(/s3cret/);
    }
  });

  it('contains the waiting calls, the queue and the state', async () => {
    const on = await bench({
      replies: [[call('c1', 'ask', { m: 'a' })]],
      tools: [echoTool('ask').tool],
      plugins: [asks().plugin],
    });
    await on.conversation.send('hi').result;
    on.conversation.followUp('later');
    await on.clock.advance(0);
    const log = on.conversation.log();
    expect(pastOf(log)).toMatchObject({
      cycle: 'suspended',
      pending: [{ callId: 'c1' }],
      queue: [{ kind: 'followUp' }],
    });
    const before = log.findIndex(({ type }) => type === 'tool-suspended');
    expect(pastOf(log, before)).toMatchObject({ cycle: 'running', pending: [], queue: [], state: {} });
    expect(pastOf(log, 0)).toMatchObject({ cycle: 'none', view: { state: 'idle', cycles: [] } });
  });
});

describe('a fork', () => {
  it('continues from a place of the log as a conversation of its own, and does not change the other one', async () => {
    const { agent, conversation, store, ran } = await twoRequests();
    const log = conversation.log();
    const place = log.findIndex((entry) => entry.type === 'run-stop') + 2;
    await agent.close();
    await forkConversation(store, 'c', 'fork', place);
    const on = await bench({ store, replies: [[t('another two')]], tools: [echoTool().tool] });
    const forked = await on.agent.open('fork');
    expect(forked.log().map(({ conversationId }) => conversationId)).toEqual(Array(place).fill('fork'));
    expect(lines(forked.messages())).toEqual(lines(pastOf(log, place).messages));
    expect((await forked.send('second').result).text).toBe('another two');
    expect(on.conversation.log()).toEqual(log);
    expect(ran).toEqual(['c1']);
  });

  it('includes the sub-agents of its calls, under ids of their own', async () => {
    const model = byTask({ alpha: [[submit('s', 'A')]], beta: [[submit('s', 'B')]] });
    const on = await bench({ replies: [[spawn('p', 'alpha', 'beta')], 'done'], tools: [subAgents({ model })] });
    await on.conversation.send('hi').result;
    const log = on.conversation.log();
    await on.agent.close();
    await forkConversation(on.store, 'c', 'fork');
    const childEntries = (entries: readonly LogEntry[], of: string) =>
      entries.flatMap((each) =>
        each.type === 'sub-agent'
          ? [each.phase + ['a', 'b'].filter((task) => childIdOf(of, 'p', task) === each.child)]
          : [],
      );
    expect(childEntries(await logOf(on.store, 'fork'), 'fork')).toEqual(childEntries(log, 'c'));
    expect(childEntries(log, 'c').sort()).toEqual(['endeda', 'endedb', 'starteda', 'startedb']);
    expect(project(await logOf(on.store, 'fork'))).toEqual(project(log));
  });

  it('replaces the sub-agents that an interrupted fork has left, and no other log under their ids', async () => {
    const model = byTask({ alpha: [[submit('s', 'A')]] });
    const on = await bench({ replies: [[spawn('p', 'alpha')], 'done'], tools: [subAgents({ model })] });
    await on.conversation.send('hi').result;
    await on.agent.close();
    const left = async (owner: string): Promise<void> => {
      const id = childIdOf('fork', 'p', 'a');
      await on.store.delete(id);
      const handle = await on.store.open(id);
      const parent = { conversationId: owner, callId: 'p' };
      const place = { seq: 0, at: 0, conversationId: id, runId: null };
      await handle.append([{ ...place, type: 'conversation', schema: 1, cwd: '', createdAt: 0, parent }], 0);
      await handle.close();
    };
    await left('another');
    await expect(forkConversation(on.store, 'c', 'fork')).rejects.toThrow(/exists already; fork into a new id/);
    await left('fork');
    await forkConversation(on.store, 'c', 'fork');
    const copy = await logOf(on.store, childIdOf('fork', 'p', 'a'));
    expect(project(copy)).toEqual(project(await logOf(on.store, childIdOf('c', 'p', 'a'))));
  });

  it('INV-5: in the middle of a call makes the outcome of that call unknown and runs nothing', async () => {
    const { agent, conversation, store, ran } = await twoRequests();
    const place = conversation.log().findIndex((entry) => entry.type === 'tool-started') + 1;
    await agent.close();
    await forkConversation(store, 'c', 'fork', place);
    const { agent: other } = await bench({ store, tools: [echoTool().tool] });
    const forked = await other.open('fork');
    expect(only(forked.log(), 'tool-result', 'run-stop')).toEqual([
      'tool-result c1 unknown',
      'run-stop interrupted crash',
    ]);
    expect(resultText(forked.log(), 'c1')).toMatch(/may have run/);
    expect(forked.unsettled.map(({ callId }) => callId)).toEqual(['c1']);
    expect(ran).toEqual(['c1']);
  });

  it('has its own copies of the images, also after the other conversation was deleted', async () => {
    const place = await mkdtemp(join(tmpdir(), 'runchart-forks-'));
    onTestFinished(() => rm(place, { recursive: true, force: true }));
    const store = jsonlStore(place);
    const on = await bench({ store, replies: ['seen'] });
    await on.conversation.send([
      { type: 'text', text: 'look' },
      { type: 'image', mediaType: 'image/png', data: dot },
    ]).result;
    await on.agent.close();
    await forkConversation(store, 'c', 'fork');
    await store.delete('c');
    const log = await logOf(store, 'fork');
    const images = log.flatMap((entry) => (entry.type === 'user-message' ? entry.content : []));
    const [, image] = images;
    const handle = await store.open('fork');
    const bytes = image?.type === 'image' ? await handle.getBlob?.(image.data) : undefined;
    await handle.close();
    expect(bytes).toEqual(new Uint8Array(dot));
  });

  it('has the images of the earlier messages with which the other one was opened', async () => {
    const place = await mkdtemp(join(tmpdir(), 'runchart-forks-'));
    onTestFinished(() => rm(place, { recursive: true, force: true }));
    const store = jsonlStore(place);
    const agent = createAgent({ model: scripted([[t('seen')]]), store });
    const shown = { role: 'user' as const, content: [{ type: 'image' as const, mediaType: 'image/png', data: dot }] };
    await (await agent.open('c', { history: [shown] })).send('which?').result;
    await agent.close();
    await forkConversation(store, 'c', 'fork');
    await store.delete('c');
    const [image] = (await logOf(store, 'fork')).flatMap((entry) =>
      entry.type === 'history' ? entry.messages.flatMap(({ content }) => content) : [],
    );
    const handle = await store.open('fork');
    expect(image?.type === 'image' && (await handle.getBlob?.(image.data))).toEqual(new Uint8Array(dot));
    await handle.close();
  });

  it('is refused onto itself, onto a conversation that exists, of nothing, and of one that is open', async () => {
    const { agent, store } = await twoRequests();
    await expect(forkConversation(store, 'c', 'other')).rejects.toMatchObject({ code: 'session_busy' });
    await agent.close();
    await forkConversation(store, 'c', 'other');
    await expect(forkConversation(store, 'c', 'other')).rejects.toMatchObject({ code: 'configuration' });
    await expect(forkConversation(store, 'c', 'c')).rejects.toMatchObject({ code: 'configuration' });
    await expect(forkConversation(store, 'nobody', 'new')).rejects.toMatchObject({ code: 'configuration' });
    await expect(forkConversation(memoryStore(), 'c', 'new')).rejects.toMatchObject({ code: 'configuration' });
  });

  it('is refused for an invalid id, of either conversation, before anything is copied', async () => {
    const { agent, store } = await twoRequests();
    await agent.close();
    for (const id of ['', null, undefined, 5, {}, []] as string[]) {
      const wanted = /must be a string that is not empty, got /;
      await expect(forkConversation(store, 'c', id)).rejects.toThrow(wanted);
      await expect(forkConversation(store, id, 'new')).rejects.toThrow(wanted);
      await expect(forkConversation(store, id, id)).rejects.toMatchObject({ code: 'configuration' });
    }
    expect((await store.list()).map(({ id }) => id)).toEqual(['c']);
  });

  it('is refused without a store', async () => {
    for (const store of [undefined, null, {}, 'store', { open: () => undefined }] as never[]) {
      const forked = forkConversation(store, 'c', 'new');
      await expect(forked).rejects.toThrow(/must be a store with open, list and delete/);
      await expect(forked).rejects.toMatchObject({ code: 'configuration' });
    }
  });
});

/** Values that are no number of entries or lines. */
const none = [Number.NaN, 2.5, -1, Number.POSITIVE_INFINITY, 2 ** 53, '3', null] as number[];

describe('a place of a log', () => {
  it('is a whole number: other values are refused with the expected and the received value', async () => {
    const { agent, conversation, store } = await twoRequests();
    const log = conversation.log();
    await agent.close();
    for (const until of none) {
      expect(() => pastOf(log, until)).toThrow(/expected a whole number of at least 0, got /);
      await expect(forkConversation(store, 'c', 'new', until)).rejects.toThrow(
        /expected a whole number of at least 1, got /,
      );
    }
    await expect(forkConversation(store, 'c', 'new', 0)).rejects.toMatchObject({ code: 'configuration' });
    expect(await logOf(store, 'new')).toEqual([]);
  });

  it('after the last entry includes all entries', async () => {
    const { agent, conversation, store } = await twoRequests();
    const log = conversation.log();
    await agent.close();
    expect(pastOf(log, log.length + 1).until).toBe(log.length);
    await forkConversation(store, 'c', 'new', log.length + 1);
    expect(await logOf(store, 'new')).toHaveLength(log.length);
  });
});

describe('a fork of nothing', () => {
  it('is refused and leaves no files of either conversation', async () => {
    const place = await mkdtemp(join(tmpdir(), 'runchart-forks-'));
    try {
      await expect(forkConversation(jsonlStore(place), 'nobody', 'new')).rejects.toMatchObject({
        code: 'configuration',
      });
      expect(await readdir(place)).toEqual([]);
    } finally {
      await rm(place, { recursive: true, force: true });
    }
  });
});

describe('a recording', () => {
  it('returns the charts after each of its lines, executes nothing, and refuses other values than a number of lines', async () => {
    const model = scripted([calls(made('a', 'ask'))]);
    const run = await recorded({ model, tools: [askedTool('ask')] });
    const { conversation } = run;
    await conversation.send('go').result;
    await conversation.decide({ callId: 'a', action: 'approve' });
    await conversation.resume().result;
    const seen = new Set<string>();
    const options = { recording: run.recording(), entries: run.entries, model };
    for (let until = 0; until <= options.recording.length; until++) {
      const { charts, log } = replayUntil(options, until);
      expect(conversation.log().slice(0, log.length)).toEqual(log);
      for (const { chart, value } of charts) seen.add(`${chart} ${JSON.stringify(value)}`);
    }
    for (const until of none)
      expect(() => replayUntil(options, until)).toThrow(/expected a whole number of at least 0/);
    expect(replayUntil(options, options.recording.length + 1).log).toEqual(replayUntil(options).log);
    expect([...seen]).toEqual(expect.arrayContaining(['CONVERSATION "waiting"', 'CONVERSATION {"busy":"active"}']));
    expect([...seen].some((state) => state.startsWith('RUN') && state.includes('ToolRound'))).toBe(true);
    expect([...seen].some((state) => state.startsWith('RESUME_TOOL_CALL'))).toBe(true);
  });
});
