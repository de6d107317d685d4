/** A conversation of an engine, its sub-agents, and clients that use the id of a sub-agent. */
import { afterEach, describe, expect, it } from 'vitest';
import { engineAgentOf } from '../../src/agent.ts';
import { type AgentOptions, createAgent, type LogEntry, type ModelPart, subAgents } from '../../src/index.ts';
import { type HoldOptions, holdConversation } from '../../src/restate/chain/holdConversation.ts';
import type { Act, ActAnswer } from '../../src/stores/logStore.ts';
import { childIdOf } from '../../src/subAgents/spawnTasks.ts';
import { tool, until } from '../simulation/engine/scenarios.ts';
import { SimulatedEngine } from '../simulation/engine/simulatedEngine.ts';
import { call, finish, spawn, submit, t } from '../support/replyParts.ts';
import { chance } from '../support/seededChance.ts';

type Replies = { readonly [request: string]: readonly (string | readonly ModelPart[])[] };

const agents: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const agent of agents.splice(0)) await agent.close();
});

function agentOf(replies: Replies, options: Omit<AgentOptions, 'model'> = {}) {
  const model = {
    id: 'scripted',
    async *stream({ messages }: { messages: readonly { role: string; content: readonly object[] }[] }) {
      const [first] = messages[0]?.content ?? [];
      const reply =
        replies[(first as { text: string }).text]?.[messages.filter(({ role }) => role === 'assistant').length];
      const parts = typeof reply === 'object' ? reply : [t(reply ?? 'beyond the script')];
      yield* parts;
      yield finish(parts.some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop', 1);
    },
  };
  const agent = engineAgentOf(
    createAgent({ model, ...options, tools: [...(options.tools ?? []), subAgents()] } as unknown as AgentOptions),
  );
  if (!agent) throw new Error('the agent is not of this process');
  agents.push(agent);
  return agent;
}

type Worker = Pick<HoldOptions, 'agent' | 'version' | 'repliesMost'>;

/** A conversation `root`. `workerOf` returns who holds a conversation in its invocation of this number. */
function family(workerOf: (id: string, invocations: number) => Worker) {
  const faults: string[] = [];
  const engine: SimulatedEngine = new SimulatedEngine({
    chance: chance(1),
    conversationId: 'root',
    deaths: 0,
    hold: (invocation) => {
      const { conversationId } = invocation;
      return holdConversation({ ...workerOf(conversationId, engine.member(conversationId).invocations), invocation });
    },
    broken: (invariant, detail) => void faults.push(`${invariant}: ${detail}`),
  });
  let acts = 0;
  const ask = async (act: object, id = 'root'): Promise<ActAnswer | undefined> => {
    acts += 1;
    const actId = `act-${acts}`;
    const { answers } = engine.member(id);
    engine.member(id).put({ ...act, actId } as unknown as Act);
    await until(`${JSON.stringify(act)} has an answer`, () => answers.has(actId) || faults.length > 0);
    if (faults.length > 0) throw new Error(faults.join('\n'));
    return answers.get(actId);
  };
  const say = (content: string, id?: string) =>
    ask({ type: 'send', content, options: { messageId: content.slice(0, 20) } }, id);
  return { engine, ask, say };
}

const has = (log: readonly LogEntry[], type: LogEntry['type'], times = 1): Promise<void> =>
  until(`${type} is in the log`, () => log.filter((entry) => entry.type === type).length >= times);
const textOf = (log: readonly LogEntry[], callId: string): string =>
  JSON.stringify(log.find((entry) => entry.type === 'tool-result' && entry.callId === callId));

const OPEN = { type: 'open', cwd: '/', owner: 'somebody' };
const ALPHA = childIdOf('root', 'p', 'a');

/** A family whose sub-agent waits for a person after the message `hi`. */
async function suspended(agent: Worker['agent']) {
  const { engine, ask, say } = family(() => ({ agent }));
  await ask(OPEN);
  await say('hi');
  await has(engine.log, 'run-suspended');
  await engine.atRest();
  return { engine, ask };
}

describe('the id of a sub-agent', () => {
  it('that another conversation has: its log is not that of the sub-agent', async () => {
    const agent = agentOf({ hi: [[spawn('p', 'alpha')], 'done'], secret: ['the words of another owner'] });
    const { engine, ask, say } = family(() => ({ agent }));
    await ask({ ...OPEN, owner: 'another' }, ALPHA);
    await say('secret', ALPHA);
    await engine.atRest();
    await ask(OPEN);
    await say('hi');
    await has(engine.log, 'run-stop');
    const result = textOf(engine.log, 'p');
    expect(result).not.toContain('the words of another owner');
    expect(result).toContain('is not that of a sub-agent of root');
  });

  it.each([
    { type: 'write-state', writes: { key: 1 } },
    { type: 'rename', title: 'mine' },
    { type: 'send', content: 'more' },
    { type: 'cancel' },
  ])('a client changes nothing there, also while the parent is at rest: %j', async (act) => {
    const agent = agentOf(
      { hi: [[spawn('p', 'alpha')], 'done'], alpha: [[call('a1', 'ask')], [submit('a2', 'A')]] },
      { tools: [tool('ask', { needsApproval: true })] },
    );
    const { engine, ask } = await suspended(agent);
    const { log } = engine.member(ALPHA);
    const before = log.length;
    expect(await ask({ ...OPEN }, ALPHA)).toMatchObject({ value: { entries: before } });
    expect(await ask(act, ALPHA)).toMatchObject({ error: { code: 'configuration' } });
    expect(log).toHaveLength(before);
  });
});

describe('a decision that is repeated', () => {
  it('after a restart has the receipt of the first one', async () => {
    const agent = agentOf(
      {
        hi: [[spawn('p', 'alpha')], 'done'],
        alpha: [[call('a1', 'ask')], [call('a2', 'ask')], [submit('a3', 'A')]],
      },
      { tools: [tool('ask', { needsApproval: true })] },
    );
    const { engine, ask } = await suspended(agent);
    const decision = { callId: 'a1', suspension: 1, action: 'approve', by: 'somebody' };
    expect(await ask({ type: 'decide', decision })).toMatchObject({ value: { receipt: 'applied' } });
    await ask({ type: 'resume', resumptionId: 'again' });
    await has(engine.log, 'run-suspended', 2);
    await engine.atRest();
    expect(await ask({ type: 'decide', decision })).toMatchObject({ value: { receipt: 'duplicate' } });
  });
});

describe('a sub-agent that no worker can open', () => {
  const replies: Replies = {
    hi: [[spawn('p', 'alpha')], 'done'],
    alpha: [[call('a1', 'one')], [call('a2', 'ask')], [submit('a3', 'A')]],
  };
  const tools = [tool('one'), tool('ask', { needsApproval: true })];

  it('and that its parent cancels: the parent ends', async () => {
    const agent = agentOf(replies, { tools });
    const { engine, ask } = await suspended(agent);
    engine.member(ALPHA).version = 99;
    expect(await ask({ type: 'cancel' })).toMatchObject({ value: { status: 'idle' } });
    await engine.atRest();
    expect(engine.log.at(-1)?.type).not.toBe('run-suspended');
  });

  const withoutTool = { makeSubAgents: undefined };
  const withAnother = createAgent({
    model: { id: 'silent', stream: () => ({}) as never },
    tools: [subAgents({ name: 'delegate' })],
  });
  const { makeSubAgents } = (withAnother as unknown as { profile: Worker['agent']['profile'] }).profile;
  it.each([
    ['a newer version', 2, withoutTool, 'no tool that spawns sub-agents'],
    ['the same version', 1, withoutTool, 'no tool that spawns sub-agents'],
    ['the same version, with another tool', 1, { makeSubAgents }, 'no tool spawn_agents that spawns sub-agents'],
  ])('after its run was left by a worker that could: its parent learns it from a worker of %s', async (...row) => {
    const [, version, change, message] = row;
    const agent = agentOf(replies, { tools });
    const other = agentOf(replies, { tools });
    Object.assign(other.profile, change);
    const isOther = (id: string, invocations: number): boolean => id === ALPHA && invocations > 1;
    const { engine, ask, say } = family((id, invocations) =>
      isOther(id, invocations) ? { agent: other, version } : { agent, version: 1, repliesMost: 1 },
    );
    await ask(OPEN);
    await say('hi');
    await Promise.race([has(engine.log, 'run-stop'), engine.atRest()]);
    expect(textOf(engine.log, 'p')).toContain(message);
    await engine.atRest();
    expect(engine.member(ALPHA).carried).toBeUndefined();
  });
});
