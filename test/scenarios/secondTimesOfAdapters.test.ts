/**
 * Every adapter with a state, used a second and a third time. A row contains an adapter, an act, and the result of each
 * time. A new adapter is one row; a new store is one line of `STORES`. The browser's tests run the same rows of stores
 * on IndexedDB.
 */
import { mkdtempSync, realpathSync } from 'node:fs';
import { appendFile, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type AgentOptions, createAgent, memoryStore } from '../../src/index.ts';
import { recordingJournal, replayingJournal, replayRecording } from '../../src/journals/index.ts';
import { hooks, jsonlStore, permissions } from '../../src/node.ts';
import { createStateManager, processNode, processRequest } from '../../src/requestLoop/index.ts';
import { allowAlways, loadConfiguration } from '../../src/session/configuration.ts';
import { inProcessTransport, route, sessions, stdioTransport } from '../../src/transports/index.ts';
import { recorded } from '../journals/recordedRun.ts';
import { serverByHand } from '../mcp/serverByHand.ts';
import { echoTool } from '../support/scenarioTools.ts';
import { call, deaf, type Reply, scripted, t } from '../support/scriptedReplies.ts';
import { codeOf, entriesIn, noticeAt, STORE_ACTS, type StoreHolder } from '../support/secondTimesOfStores.ts';
import { flush } from '../support/virtualClock.ts';

interface Row {
  adapter: string;
  act: string;
  /** The result of the act each time. */
  same: unknown;
  /** Creates the adapter, and returns the act, which is done three times. */
  begin(): ((time: number) => unknown) | Promise<(time: number) => unknown>;
}

function folder(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'runchart-second-')));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}
function agentOf(replies: readonly Reply[], options: Partial<AgentOptions> = {}) {
  const agent = createAgent({ model: scripted(replies), ...options });
  onTestFinished(() => agent.close());
  return agent;
}

const STORES: { [name: string]: () => StoreHolder } = {
  memoryStore() {
    const store = memoryStore();
    return { store, another: () => store };
  },
  jsonlStore() {
    const directory = folder();
    return { store: jsonlStore(directory), another: () => jsonlStore(directory) };
  },
  'jsonlStore, durable': () => {
    const directory = folder();
    const make = () => jsonlStore(directory, { durability: 'power' });
    return { store: make(), another: make };
  },
};
const ofStores: readonly Row[] = Object.entries(STORES).flatMap(([adapter, make]) =>
  STORE_ACTS.map(({ act, same, run }) => ({
    ...{ adapter, act, same },
    begin: () => {
      const holder = make();
      return (time: number) => run(holder, time);
    },
  })),
);

const ofFiles: readonly Row[] = [
  {
    adapter: 'jsonlStore',
    act: 'opens the log of a process that was killed during an append',
    same: { notices: ['torn_tail'], gapless: true, leases: 1 },
    async begin() {
      const directory = folder();
      const store = jsonlStore(directory);
      const lock = join(directory, 'c.jsonl.lock');
      return async (time) => {
        const first = await store.open('c');
        const { length } = await entriesIn(first);
        await first.append([noticeAt(length)], length);
        await first.close();
        await appendFile(join(directory, 'c.jsonl'), '{"seq":');
        // No process has this number.
        const dead = { pid: 2 ** 30, started: '1', token: 0 };
        const [own = ''] = await readdir(lock);
        const { space, host } = JSON.parse(await identityText(directory)) as { space: string; host: string };
        await writeFile(join(lock, `${Number(own) + 1}`), JSON.stringify({ ...dead, space, host }));
        const handle = await jsonlStore(directory).open('c');
        const notices = handle.notices?.map(({ code }) => code);
        const entries = await entriesIn(handle);
        const leases = (await readdir(lock)).length;
        await handle.close();
        return { notices, gapless: entries.length === time + 1 && entries.every(({ seq }, at) => seq === at), leases };
      };
    },
  },
  {
    adapter: 'jsonlStore',
    act: 'opens no missing log that must exist, and creates none',
    same: ['not_found', []],
    begin() {
      const store = jsonlStore(folder());
      return async () => [await codeOf(() => store.open('c', { existing: true })), await store.list()];
    },
  },
];

/** The content of a current lease of this process. */
async function identityText(directory: string): Promise<string> {
  const probe = await jsonlStore(directory).open('probe');
  const lock = join(directory, 'probe.jsonl.lock');
  const [token = ''] = await readdir(lock);
  const text = await readFile(join(lock, token), 'utf8');
  await probe.close();
  return text;
}

const COMMAND = { command: 'npm run build' };
const explained = async (plugin: ReturnType<typeof permissions>, cwd: string) => {
  const { outcome, matched } = await plugin.explain('Bash', COMMAND, cwd);
  return { outcome, matched: matched.length };
};
const ofPermissions: readonly Row[] = [
  {
    adapter: 'permissions',
    act: 'remembers a call once, also if it is reported several times at once',
    same: { outcome: 'allow', matched: 1 },
    begin() {
      const [plugin, cwd] = [permissions(), folder()];
      return async () => {
        await Promise.all([1, 2].map(() => plugin.remember('Bash', COMMAND, cwd)));
        return explained(plugin, cwd);
      };
    },
  },
  {
    adapter: 'permissions',
    act: 'does not use the approvals of another session',
    same: { outcome: 'ask', matched: 0 },
    begin() {
      const [first, second, cwd] = [permissions(), permissions(), folder()];
      return async () => {
        await first.remember('Bash', COMMAND, cwd);
        return explained(second, cwd);
      };
    },
  },
  {
    adapter: 'permissions',
    act: 'allows the approved calls in each conversation that is opened again',
    same: 'NaturalEnd',
    async begin() {
      const [plugin, cwd] = [permissions(), folder()];
      const { tool } = echoTool('Bash');
      const replies = [1, 2, 3].flatMap((time) => [[call(`c${time}`, 'Bash', { m: 'a' })], 'done']);
      const agent = agentOf(replies, { tools: [tool], plugins: [plugin], cwd });
      await plugin.remember('Bash', { m: 'a' }, cwd);
      return async () => {
        const conversation = await agent.open('c');
        const { termination } = await conversation.send('go').result;
        await conversation.close();
        return termination;
      };
    },
  },
  {
    adapter: 'rules that are always allowed',
    act: 'are kept once each, even if two are saved at once, and the next session reads them',
    same: ['bash(npm run build)', 'bash(npm test)'],
    begin() {
      const [cwd, userDirectory] = [folder(), folder()];
      return async () => {
        const save = (rule: string): Promise<string> => allowAlways([rule], { cwd, userDirectory });
        const [path] = await Promise.all([save('bash(npm run build)'), save('bash(npm test)')]);
        await loadConfiguration({ cwd, userDirectory });
        const kept = JSON.parse(await readFile(path, 'utf8')) as { [directory: string]: string[] };
        return [...(kept[cwd] ?? [])].sort();
      };
    },
  },
];

const ofTheLoop: readonly Row[] = [
  {
    adapter: 'the state of the request loop',
    act: 'calls the callbacks of a request for that request alone, and accepts the same ones again',
    same: ['start echo', 'completed echo', 'delta done'],
    begin() {
      const replies = [1, 2, 3].flatMap((time) => [[call(`c${time}`, 'echo', { m: 'a' })], [t('done')]]);
      const state = createStateManager({ resolveModel: always(scripted(replies)), tools: [echoTool().tool] });
      let events: string[] = [];
      const callbacks = {
        streamingCallback: (delta: string) => void events.push(`delta ${delta}`),
        toolStartCallback: (label: string) => void events.push(`start ${label}`),
        toolResultCallback: (name: string, status: string) => void events.push(`${status} ${name}`),
      };
      return async () => {
        events = [];
        await processRequest('go', 'm', state, callbacks);
        return events;
      };
    },
  },
  {
    adapter: 'the state of the request loop',
    act: 'starts nothing with an aborted signal, ends an aborted request, and serves the next one',
    same: ['UserAbortError', 'UserAbortError', 'done'],
    begin() {
      const replies = [1, 2, 3].flatMap(() => [deaf(t('a')), 'done']);
      const state = createStateManager({ resolveModel: always(scripted(replies)), tools: [] });
      const nameOf = (asked: Promise<unknown>): Promise<string> =>
        asked.then(
          () => 'done',
          (error: Error) => error.constructor.name,
        );
      return async () => {
        const abort = new AbortController();
        const streamingCallback = (): void => {
          abort.abort();
          abort.abort();
        };
        const { signal } = abort;
        return [
          await nameOf(processRequest('before', 'm', state, { signal: AbortSignal.abort() })),
          await nameOf(processRequest('during', 'm', state, { signal, streamingCallback })),
          await nameOf(processRequest('after', 'm', state)),
        ];
      };
    },
  },
  {
    adapter: 'the state of the request loop',
    act: 'counts a node of another engine once',
    same: { notifications: 1, thoughts: 1 },
    begin() {
      const state = createStateManager({ resolveModel: always(scripted([])), tools: [] });
      state.session.runtime.toolRegistry.register('c1', 'echo', { m: 'a' });
      const part = { partKind: 'tool-return', toolCallId: 'c1', toolName: 'echo', content: 'a' };
      const node = { thought: 'hm', request: { parts: [part] } } as never;
      let notificationCount = 0;
      const toolResultCallback = (): void => {
        notificationCount += 1;
      };
      return async () => {
        await processNode(node, state, { toolResultCallback });
        return { notifications: notificationCount, thoughts: state.session.conversation.thoughts.length };
      };
    },
  },
];
const always =
  <T>(value: T) =>
  (): T =>
    value;

const ofJournals: readonly Row[] = [
  {
    adapter: 'a recording',
    act: 'returns the recorded log at each replay, and that of a replay too',
    same: [true, true],
    async begin() {
      const on = await recorded({ model: scripted(['one', 'two']) });
      for (const text of ['first', 'second']) await on.conversation.send(text).result;
      await on.conversation.close();
      return async () => {
        const log = on.replayed();
        // An agent on a replaying journal, recorded again.
        const store = memoryStore();
        const handle = await store.open('c');
        await handle.append(on.entries, 0);
        await handle.close();
        const again: object[] = [];
        const record = recordingJournal((line) => void again.push(line));
        const replay = replayingJournal(on.recording());
        const journal: typeof record = (embedded, id) => record(replay(embedded), id);
        const agent = agentOf([], { store, ports: { journal } });
        await agent.open('c');
        await agent.close();
        const entries = [...on.entries];
        const second = replayRecording({ recording: again as never, entries, model: { id: 'scripted' } });
        return [log === on.logged(), JSON.stringify(second) === log];
      };
    },
  },
  {
    adapter: 'recordingJournal',
    act: 'records each opening of a conversation separately',
    same: { replays: true, of: ['c'] },
    begin() {
      let lines: object[] = [];
      const of = new Set<string>();
      const journal = recordingJournal((line, id) => {
        of.add(id);
        lines.push(JSON.parse(JSON.stringify(line)));
      });
      const agent = agentOf(['one', 'two', 'three'], { ports: { journal } });
      return async () => {
        lines = [];
        const conversation = await agent.open('c');
        const entries = [...conversation.log()];
        await conversation.send('go').result;
        await conversation.close();
        const log = replayRecording({ recording: lines as never, entries, model: { id: 'scripted' } });
        return { replays: JSON.stringify(log) === JSON.stringify(conversation.log()), of: [...of] };
      };
    },
  },
];

const ofTransports: readonly Row[] = [
  {
    adapter: 'sessions()',
    act: 'shares the conversation with a second caller, and refuses an excess release',
    same: [true, 'done', 'done', 'configuration'],
    begin() {
      const shared = sessions(agentOf([]));
      onTestFinished(() => shared.close());
      return async () => {
        const [first, second] = [await shared.acquire('c'), await shared.acquire('c')];
        const release = (): Promise<string> => codeOf(() => shared.release(first));
        return [first === second, await release(), await release(), await release()];
      };
    },
  },
  {
    adapter: 'sessions()',
    act: 'are closed, refuse later callers, and accept earlier conversations back',
    same: ['done', 'closed', 'done'],
    async begin() {
      const shared = sessions(agentOf([]));
      const conversation = await shared.acquire('c');
      return async () => [
        await codeOf(() => shared.close()),
        await codeOf(() => shared.acquire('c')),
        await codeOf(() => shared.release(conversation)),
      ];
    },
  },
  {
    adapter: 'a router',
    act: 'sends the whole conversation to each later client, and ends each with its transport',
    same: { begins: 'system-init', gapless: true, turns: 1 },
    begin() {
      const agent = agentOf(['one', 'two', 'three']);
      const shared = sessions(agent);
      onTestFinished(() => shared.close());
      return async (time) => {
        const { server, client } = inProcessTransport();
        const outgoing: { type: string; entry?: { seq: number } }[] = [];
        client.messages$.subscribe((message) => outgoing.push(message as never));
        const ended = route(agent, server, { multiTurn: true, sessions: shared });
        client.send({ type: 'user-message', conversation: 'c', content: `${time}` });
        const turns = (): number => outgoing.filter(({ type }) => type === 'turn-result').length;
        await expect.poll(turns).toBe(1);
        client.close();
        client.close();
        await server.close();
        await ended;
        const seqs = outgoing.flatMap(({ entry }) => (entry ? [entry.seq] : []));
        return { begins: outgoing[0]?.type, gapless: seqs.every((seq, at) => seq === at), turns: turns() };
      };
    },
  },
  {
    adapter: 'stdioTransport',
    act: 'is closed, reads nothing more and writes nothing more',
    same: ['done', 0, ''],
    begin() {
      const [input, output] = [new PassThrough(), new PassThrough()];
      const transport = stdioTransport({ input, output });
      return async () => {
        const code = await codeOf(() => transport.close());
        if (!input.writableEnded) input.end('{"type":"list"}\n');
        let read = 0;
        for await (const _ of transport.read()) read += 1;
        await transport.write({ type: 'error', code: 'x', message: 'x' });
        return [code, read, String(output.read() ?? '')];
      };
    },
  },
];

const ofOthers: readonly Row[] = [
  {
    adapter: 'an agent',
    act: 'is closed, and opens nothing more',
    same: ['done', 'closed', 'closed'],
    async begin() {
      const agent = agentOf([]);
      await agent.open('c');
      return async () => [
        await codeOf(() => agent.close()),
        await codeOf(() => agent.open('c')),
        await codeOf(() => agent.run('hi')),
      ];
    },
  },
  {
    adapter: 'a run',
    act: 'returns its result, its text and its items to each caller, and a cancel after its end has no effect',
    same: ['done', 'one', true, 'done'],
    async begin() {
      const conversation = await agentOf(['one']).open('c');
      const run = conversation.send('hi');
      const { runId } = await run.result;
      return async () => {
        const seqs: number[] = [];
        for await (const item of run) if ('seq' in item && item.runId === runId) seqs.push(item.seq);
        const isWhole = seqs.length === conversation.log().filter((entry) => entry.runId === runId).length;
        return [await codeOf(() => run.result), await run.text, isWhole, await codeOf(() => run.cancel())];
      };
    },
  },
  {
    adapter: 'hooks',
    act: 'receive each opening and each close of a conversation once',
    same: ['SessionStart', 'SessionEnd'],
    begin() {
      let events: string[] = [];
      const record = { run: ({ event }: { event: string }) => void events.push(event) };
      const agent = agentOf(['one', 'two', 'three'], {
        plugins: [hooks({ SessionStart: [record], SessionEnd: [record] })],
      });
      return async () => {
        events = [];
        const conversation = await agent.open('c');
        await conversation.send('hi').result;
        await conversation.close();
        await conversation.close();
        return events;
      };
    },
  },
  {
    adapter: 'an MCP server',
    act: 'lists its tools over one connection, which each close ends once',
    same: { names: ['act', 'act'], connections: 1, closed: 1 },
    begin() {
      const { server, ends } = serverByHand();
      return async (time) => {
        let closed = 0;
        const lists = await Promise.all([server.tools(), server.tools()]);
        const end = ends[time];
        if (end)
          end.onclose = () => {
            closed += 1;
          };
        await Promise.all([server.close(), server.close()]);
        await server.close();
        await flush();
        return {
          names: lists.flat().map(({ name }) => name),
          connections: ends.length - time,
          closed,
        };
      };
    },
  },
];

const ROWS = [...ofStores, ...ofFiles, ...ofPermissions, ...ofTheLoop, ...ofJournals, ...ofTransports, ...ofOthers];

describe('each time', () => {
  const named = ROWS.map((row) => [`${row.adapter} ${row.act}`, row] as const);
  it.each(named)('%s', async (_, { begin, same }) => {
    const act = await begin();
    for (const time of [0, 1, 2]) expect(await act(time), `time ${time + 1}`).toEqual(same);
  });
});
