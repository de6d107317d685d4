/**
 * Conversations on a real Restate server: tools, approvals over restarts, cancels, and workers and servers that are killed. `npm ci` in
 * this folder installs the server; Node 24 runs the file: `node --test test/restate/restateChecks.ts`.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { connect } from '../../src/client/index.ts';
import type { Agent, Conversation, LogEntry, PendingCall } from '../../src/index.ts';
import { restateAgent } from '../../src/restate/index.ts';
import { subAgentIds } from '../../src/stores/logStore.ts';
import { createHandlers } from '../../src/transports/index.ts';
import { RestateServer, serverBinary, until } from './restateServer.ts';
import { notesIn, type ToolNote, WorkerProcess } from './workerProcess.ts';

const binary = serverBinary();
const reason = 'the server is not installed: run npm ci in test/restate';

describe('runchart/restate', { skip: binary ? false : reason, timeout: 900_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'runchart-worker-'));
  const ledger = join(directory, 'ledger');
  const blobs = join(directory, 'blobs');
  let server: RestateServer;
  let worker: WorkerProcess;
  let agent: Agent;

  before(async () => {
    writeFileSync(ledger, '');
    server = await RestateServer.start(binary as string);
    worker = new WorkerProcess({ admin: server.admin, ledger, blobs, name: 'first' });
    await worker.start();
    agent = restateAgent({ ingress: server.ingress });
  });

  after(async () => {
    await agent?.close();
    await worker?.kill();
    await server?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  const notes = (): ToolNote[] => notesIn(ledger);
  const count = (what: string, key: string): number =>
    notes().filter((note) => note.what === what && note.key.startsWith(key)).length;
  const message = (...calls: object[]): string => `CALL ${JSON.stringify(calls)} END`;
  const release = (name: string): string => join(directory, name);
  const stopped = (conversation: Conversation, times = 1): Promise<void> =>
    until('the run stops', () => typesOf(conversation).filter((type) => type === 'run-stop').length >= times);
  const typesOf = (conversation: Conversation): LogEntry['type'][] => conversation.log().map(({ type }) => type);

  it('a message runs its tool and ends, and a watcher receives every entry once and in order', async () => {
    const conversation = await agent.open('first');
    const seen: number[] = [];
    conversation.log$().subscribe(({ seq }) => seen.push(seq));
    const result = await conversation.send(message({ name: 'once' })).result;
    assert.equal(result.termination, 'NaturalEnd', JSON.stringify(result));
    assert.equal(result.text, 'this is the end');
    assert.equal(count('end', 'first/'), 1);
    assert.deepEqual(
      seen,
      conversation.log().map(({ seq }) => seq),
    );
    const [row] = await agent.list();
    assert.equal(row?.id, 'first');
    await conversation.close();
  });

  it('a call that waits for approval is state at rest: the worker dies, another one carries out the decision', async () => {
    const conversation = await agent.open('approval');
    const call = await approvedByNextWorker(conversation, message({ name: 'ask' }));
    assert.equal(call.path.length, 1);
    assert.equal(count('start', 'approval/'), 1);
  });

  /** Sends a message whose call waits for approval, replaces the worker, and approves the call. Resolves to the call after the run. */
  async function approvedByNextWorker(conversation: Conversation, content: string): Promise<PendingCall> {
    const first = await conversation.send(content).result;
    assert.equal(first.termination, 'Suspended');
    // While the decision is awaited, nothing is parked.
    await until('no invocation is under way', async () => (await invocations()).length === 0);
    await worker.kill();
    await worker.start();
    const [call] = conversation.pending;
    assert.ok(call);
    const { callId, suspension } = call;
    assert.equal(await conversation.decide({ callId, suspension, action: 'approve', by: 'somebody' }), 'applied');
    const result = await conversation.resume().result;
    assert.equal(result.termination, 'NaturalEnd', JSON.stringify(result));
    return call;
  }

  const invocations = (): Promise<unknown[]> =>
    rowsOf("select id, status from sys_invocation where status not in ('completed')");

  async function rowsOf(query: string): Promise<Record<string, unknown>[]> {
    const response = await fetch(`${server.admin}/query`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({ query }),
    });
    return ((await response.json()) as { rows: Record<string, unknown>[] }).rows;
  }

  it('a cancel aborts the tool and ends the run', async () => {
    const conversation = await agent.open('cancel');
    conversation.send(message({ name: 'once', release: release('never') }));
    await until('the tool runs', () => count('start', 'cancel/') === 1);
    const at = Date.now();
    await conversation.cancel();
    const took = Date.now() - at;
    assert.equal(conversation.status, 'idle');
    await until('the tool is aborted', () => count('abort', 'cancel/') === 1);
    const aborted = (notes().find((note) => note.what === 'abort' && note.key.startsWith('cancel/'))?.at ?? 0) - at;
    console.log(`cancel: the tool was aborted after ${aborted} ms, the stop was here after ${took} ms`);
  });

  it('kill -9 of the worker in a tool: a tool that is not idempotent is unknown, one that ended is not repeated, and the run goes on', async () => {
    const conversation = await agent.open('killed');
    conversation.send(message({ name: 'again' }, { name: 'once', release: release('never') }));
    await until('the second tool runs', () =>
      notes().some(({ name, what, key }) => what === 'start' && name === 'once' && key.startsWith('killed/')),
    );
    await until('the result of the first is stored', () => typesOf(conversation).includes('tool-result'));
    await worker.kill();
    await worker.start();
    await stopped(conversation, 2);
    const results = conversation.log().flatMap((entry) => (entry.type === 'tool-result' ? [entry.outcome] : []));
    assert.deepEqual(results, ['succeeded', 'unknown']);
    assert.equal(count('start', 'killed/'), 2);
    assert.equal(conversation.unsettled.length, 1);
    const stops = conversation.log().flatMap((entry) => (entry.type === 'run-stop' ? [entry.reason] : []));
    assert.equal(stops.at(-1), 'completed');
  });

  it('kill -9 of the worker in an idempotent tool: it runs again with its key, and the log shows no crash', async () => {
    const conversation = await agent.open('repeated');
    conversation.send(message({ name: 'again', release: release('repeated') }));
    await until('the tool runs', () => count('start', 'repeated/') === 1);
    await worker.kill();
    writeFileSync(release('repeated'), '');
    await worker.start();
    await stopped(conversation);
    assert.equal(count('start', 'repeated/'), 2);
    assert.equal(
      new Set(
        notes()
          .filter(({ key }) => key.startsWith('repeated/'))
          .map(({ key }) => key),
      ).size,
      1,
    );
    assert.equal(typesOf(conversation).filter((type) => type === 'run-started' || type === 'run-resumed').length, 1);
  });

  it('kill -9 of the server in a tool: what runs ends once', async () => {
    const conversation = await agent.open('server');
    conversation.send(message({ name: 'again', release: release('server') }));
    await until('the tool runs', () => count('start', 'server/') === 1);
    await server.kill();
    await until('the attempt is over, and its tool is aborted', () => count('abort', 'server/') === 1);
    await server.start();
    writeFileSync(release('server'), '');
    await stopped(conversation);
    const results = conversation.log().filter(({ type }) => type === 'tool-result');
    assert.equal(results.length, 1);
  });

  it('a long run continues in other invocations, so their journals stay short', async () => {
    const conversation = await agent.open('long');
    const { result } = conversation.send('ROUNDS 120');
    const journals = new Map<unknown, number>();
    let isOver = false;
    void result.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      const query = "select id, journal_size from sys_invocation where target like '%/long/hold'";
      for (const { id, journal_size } of await rowsOf(query)) journals.set(id, Number(journal_size ?? 0));
    }
    assert.equal((await result).termination, 'NaturalEnd', JSON.stringify(await result));
    assert.equal((await result).turns, 121);
    assert.equal(count('end', 'long/'), 120);
    assert.ok(journals.size >= 3, `${journals.size} invocations`);
    console.log(`journals of a run with 120 rounds: ${[...journals.values()].join(', ')} items`);
    assert.ok(Math.max(...journals.values()) < 1_500);
    assert.equal(typesOf(conversation).filter((type) => type === 'run-started' || type === 'run-resumed').length, 1);
  });

  it('large contents are in the blob store, and the log has them', async () => {
    const conversation = await agent.open('large');
    const text = 'a long message '.repeat(100_000);
    const result = await conversation.send(text).result;
    assert.equal(result.termination, 'NaturalEnd', JSON.stringify(result));
    assert.ok(JSON.stringify(conversation.log()).includes(text));
    const [row] = await rowsOf("select max(length(value)) as largest from state where service_key = 'large'");
    assert.ok(Number(row?.largest) < 66_000, JSON.stringify(row));
    await agent.profile.store.delete('large');
    assert.equal(readdirSync(blobs, { recursive: true, withFileTypes: true }).filter((e) => e.isFile()).length, 0);
  });

  it('a new version at another address: the old one finishes its runs, and the new one has the others', async () => {
    const old = await agent.open('old');
    old.send(message({ name: 'once', release: release('old') }, { name: 'again' }));
    await until('the tool runs', () => count('start', 'old/') >= 1);
    const next = new WorkerProcess({ admin: server.admin, ledger, blobs, name: 'second' });
    await next.start();
    const fresh = await agent.open('fresh');
    assert.equal((await fresh.send(message({ name: 'once' })).result).termination, 'NaturalEnd');
    // A cancel, a decision or a message of a run reaches the worker that has it.
    const { delivered } = old.steer('go on');
    writeFileSync(release('old'), '');
    assert.equal(await delivered, 'delivered');
    await stopped(old);
    const workersOf = (id: string): string[] => [
      ...new Set(
        notes()
          .filter(({ key }) => key.startsWith(id))
          .map(({ by }) => by),
      ),
    ];
    assert.deepEqual([workersOf('old/'), workersOf('fresh/')], [['first'], ['second']]);
    await until('nothing is under way', async () => (await invocations()).length === 0);
    await worker.kill();
    assert.equal((await old.send(message({ name: 'once' })).result).termination, 'NaturalEnd');
    assert.deepEqual(workersOf('old/'), ['first', 'second']);
    worker = next;
  });

  const spawn = (...tasks: string[]): object => ({
    name: 'spawn_agents',
    tasks: tasks.map((task, index) => ({ id: `task-${index}`, task })),
  });
  const childrenOf = (conversation: Conversation): string[] => [...subAgentIds(conversation.log())];
  const outcomesOf = (conversation: Conversation): unknown[] =>
    conversation.log().flatMap((entry) => (entry.type === 'tool-result' ? [entry.outcome] : []));

  it('two sub-agents work at once, and each has a log under an id of its own', async () => {
    const conversation = await agent.open('family', { owner: 'somebody' });
    const both = [message({ name: 'once' }), message({ name: 'again' })];
    const result = await conversation.send(message(spawn(...both))).result;
    assert.equal(result.termination, 'NaturalEnd', JSON.stringify(result));
    assert.deepEqual(outcomesOf(conversation), ['succeeded']);
    const children = childrenOf(conversation);
    assert.equal(children.length, 2);
    for (const id of children) {
      assert.equal(count('end', `${id}/`), 1);
      await assert.rejects(agent.open(id, { owner: 'somebody else' }), { code: 'not_found' });
      const child = await agent.open(id, { owner: 'somebody' });
      assert.deepEqual(outcomesOf(child), ['succeeded', 'succeeded']);
      assert.equal((await child.send('hello').result).error?.code, 'configuration');
      await assert.rejects(agent.open(id, { existing: true }), { code: 'not_found' });
      await child.close();
    }
    assert.equal((await agent.list()).filter(({ id }) => children.includes(id)).length, 0);
    await agent.profile.store.delete('family');
    await until('the sub-agents are deleted', async () => {
      const logs = await Promise.all(children.map((id) => agent.profile.store.stateOf?.(id)));
      return logs.every((log) => log?.length === 0);
    });
  });

  it('each sub-agent runs in an invocation of its own', async () => {
    const conversation = await agent.open('family-apart');
    const task = (name: string): string => message({ name: 'once', release: release(name) });
    const { result } = conversation.send(message(spawn(task('apart-1'), task('apart-2'))));
    await until('both have begun', () => childrenOf(conversation).length === 2);
    const children = childrenOf(conversation);
    await until('both work at once', () => children.every((child) => count('start', `${child}/`) === 1));
    const rows = await rowsOf("select target from sys_invocation where status not in ('completed')");
    const targets = rows.map((row) => String((row as { target: string }).target));
    for (const id of ['family-apart', ...children])
      assert.ok(
        targets.some((target) => target.endsWith(`/${id}/hold`)),
        id,
      );
    for (const name of ['apart-2', 'apart-1']) writeFileSync(release(name), '');
    assert.equal((await result).termination, 'NaturalEnd', JSON.stringify(await result));
    await until('nothing is under way', async () => (await invocations()).length === 0);
  });

  it('a call of a sub-agent waits for approval: nothing is under way, the worker dies, and the decision continues it', async () => {
    const conversation = await agent.open('family-approval');
    const call = await approvedByNextWorker(conversation, message(spawn(message({ name: 'ask' }))));
    assert.equal(call.path.length, 2);
    const [child = ''] = childrenOf(conversation);
    assert.equal(count('start', `${child}/`), 1);
  });

  it('kill -9 of the worker in an idempotent tool of a sub-agent: the sub-agent is not started twice, and no log shows a crash', async () => {
    const conversation = await agent.open('family-killed');
    const task = message({ name: 'again' }, { name: 'again', release: release('family-killed') });
    const { result } = conversation.send(message(spawn(task)));
    await until('the sub-agent has begun', () => childrenOf(conversation).length === 1);
    const [child = ''] = childrenOf(conversation);
    await until('its second tool runs', () => count('start', `${child}/`) === 2 && count('end', `${child}/`) === 1);
    await worker.kill();
    writeFileSync(release('family-killed'), '');
    await worker.start();
    assert.equal((await result).termination, 'NaturalEnd', JSON.stringify(await result));
    const log = await agent.open(child);
    for (const each of [conversation, log])
      assert.equal(typesOf(each).filter((type) => type === 'run-started' || type === 'run-resumed').length, 1);
    assert.equal(conversation.log().filter(({ type }) => type === 'sub-agent').length, 2);
    await log.close();
  });

  it('a cancel of the parent ends the tool of its sub-agent', async () => {
    const conversation = await agent.open('family-cancel');
    conversation.send(message(spawn(message({ name: 'once', release: release('never') }))));
    await until('the sub-agent has begun', () => childrenOf(conversation).length === 1);
    const [child = ''] = childrenOf(conversation);
    await until('its tool runs', () => count('start', `${child}/`) === 1);
    await conversation.cancel();
    await until('the tool is aborted', () => count('abort', `${child}/`) === 1);
    await until(
      'the end is on record',
      () => conversation.log().filter(({ type }) => type === 'sub-agent').length === 2,
    );
    const log = await agent.open(child);
    const [stop] = log.log().filter(({ type }) => type === 'run-stop');
    assert.equal(stop?.type === 'run-stop' && stop.reason, 'interrupted');
    await log.close();
  });

  it('run() denies a call that needs approval, and ends', async () => {
    const asked = notes().filter(({ what, name }) => what === 'start' && name === 'ask').length;
    const result = await agent.run(message({ name: 'ask' }));
    assert.equal(result.termination, 'NaturalEnd', JSON.stringify(result));
    assert.equal(notes().filter(({ what, name }) => what === 'start' && name === 'ask').length, asked);
  });

  it('createHandlers serves clients from the engine with no change', async () => {
    const handle = createHandlers(agent, { authorize: async () => ({ by: 'somebody' }) });
    const client = connect({
      baseURL: 'http://engine.test/',
      fetch: (input, init) => handle(new Request(input, init)),
    });
    const conversation = await client.open('served');
    const result = await conversation.send(message({ name: 'once' })).result;
    assert.equal(result.termination, 'NaturalEnd', JSON.stringify(result));
    assert.ok((await client.list()).some(({ id }) => id === 'served'));
    await client.close();
  });
});
