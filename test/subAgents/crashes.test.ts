/** A process ends at any append of a parent or a sub-agent (docs/internals/model.md, Effect Records). */
import { describe, expect, it } from 'vitest';
import {
  type Conversation,
  type LogEntry,
  type LogStore,
  type Model,
  memoryStore,
  subAgents,
} from '../../src/index.ts';
import { pairingFaults } from '../../src/testing/pairingFaults.ts';
import { type Bench, bench } from '../support/agentBench.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, finish, type ScriptedModel, t } from '../support/scriptedReplies.ts';
import { logOf, reported, spawn, submit } from '../support/subAgentBench.ts';

type Logs = { [id: string]: readonly LogEntry[] };
const prices = { input: 1_000_000, output: 0 };

/** A store that keeps its content after each append, and starts with the content of another. */
async function filmed(from: Logs): Promise<{ store: LogStore; film: Logs[] }> {
  const inner = memoryStore();
  let held = from;
  const film: Logs[] = [];
  for (const [id, log] of Object.entries(from)) {
    const handle = await inner.open(id);
    await handle.append(log, 0);
    await handle.close();
  }
  const open: LogStore['open'] = async (id) => {
    const handle = await inner.open(id);
    const keep = (entries: readonly LogEntry[], seq: number): void => {
      handle.appendNow?.(entries, seq);
      held = { ...held, [id]: [...(held[id] ?? []), ...entries] };
      film.push(held);
    };
    return {
      read: (since) => handle.read(since),
      close: () => handle.close(),
      append: async (entries, seq) => keep(entries, seq),
      appendNow: keep,
    };
  };
  return { store: { ...inner, open }, film };
}

/** A model that follows its messages: it makes one call, and ends after the result. */
function minded(): ScriptedModel {
  const model: Model = {
    id: 'minded',
    prices,
    async *stream({ messages }) {
      expect(pairingFaults(messages)).toEqual([]);
      const [first] = messages[0]?.content ?? [];
      const task = first?.type === 'text' ? first.text : '';
      const called = messages.some((message) => message.role === 'assistant' && message.toolCalls.length > 0);
      if (task === 'alpha') yield called ? submit('s', 'A') : call('x', 'ask', { m: 'x' });
      else if (task === 'beta') yield called ? submit('s', 'B') : call('e', 'echo', { m: 'e' });
      else if (called) yield t('done');
      else yield spawn('p', 'alpha', 'beta');
      yield finish(task === 'hi' && called ? 'stop' : 'tool-calls', 1);
    },
  };
  return model as ScriptedModel;
}

const living = (store: LogStore): Promise<Bench> => {
  const [ask, echo] = [echoTool('ask'), echoTool()];
  return bench({ store, model: minded(), tools: [ask.tool, echo.tool, subAgents()], plugins: [asks().plugin] });
};

/** Sends the message, approves waiting calls and resumes, until nothing remains to do. */
async function finishOff(conversation: Conversation): Promise<void> {
  const begun = conversation.log().some(({ type }) => type === 'user-message');
  let run = begun ? conversation.resume() : conversation.send('hi');
  for (let round = 0; round < 5; round++) {
    const { termination, pending } = await run.result;
    if (termination !== 'Suspended') return;
    for (const { callId, suspension } of pending) await conversation.decide({ callId, suspension, action: 'approve' });
    run = conversation.resume();
  }
  throw new Error('it goes round in circles');
}

/** More than one entry of a type about one call. */
function twice(log: readonly LogEntry[], type: LogEntry['type']): string[] {
  const ids = log.flatMap((entry) => (entry.type === type && 'callId' in entry ? [String(entry.callId)] : []));
  return ids.filter((id, index) => ids.indexOf(id) !== index);
}

const spentBy = (log: readonly LogEntry[]): number =>
  log.reduce((sum, entry) => sum + (entry.type === 'model-reply' ? (entry.costUsd ?? 0) : 0), 0);

describe('the death of a process at any append', () => {
  it('B14, INV-8: nothing runs twice, everything ends once, and usage is counted once', async () => {
    const { store, film } = await filmed({});
    const first = await living(store);
    await finishOff(first.conversation);
    await first.agent.close();
    expect(film.length).toBeGreaterThan(30);

    const whole = film.map(async (logs) => {
      const { store: again } = await filmed(logs);
      const { conversation, agent } = await living(again);
      await finishOff(conversation);
      const costUsd = (await agent.list())[0]?.costUsd;
      const log = conversation.log();
      await agent.close();
      return { store: again, log, costUsd };
    });
    for (const [frame, { store: after, log, costUsd }] of (await Promise.all(whole)).entries()) {
      const ids = new Set(log.flatMap((entry) => (entry.type === 'sub-agent' ? [entry.child] : [])));
      const children = await Promise.all([...ids].map((id) => logOf(after, id)));
      for (const each of children) {
        // submit_result has no effect outside the log, and is declared idempotent.
        const again = twice(each, 'tool-started').filter((id) => !id.startsWith('s'));
        expect([frame, again, twice(each, 'tool-result')]).toEqual([frame, [], []]);
        const runs = each.filter(({ type }) => type.startsWith('run-'));
        expect([frame, runs.at(-1)?.type]).toEqual([frame, 'run-stop']);
      }
      const phases = log.flatMap((entry) => (entry.type === 'sub-agent' ? [`${entry.child} ${entry.phase}`] : []));
      expect([frame, phases.length]).toEqual([frame, new Set(phases).size]);
      expect([frame, phases.length]).toEqual([frame, ids.size * 2]);
      expect([frame, twice(log, 'tool-result')]).toEqual([frame, []]);
      const reports = reported(log, 'p').map(({ id, outcome, text }) => `${id} ${outcome} ${text}`);
      expect([frame, reports.sort()]).toEqual([frame, ids.size === 0 ? [] : ['a succeeded A', 'b succeeded B']]);
      const sum = [log, ...children].reduce((total, each) => total + spentBy(each), 0);
      expect([frame, costUsd]).toEqual([frame, sum]);
    }
  });
});
