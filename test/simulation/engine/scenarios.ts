/** Scenarios that lead to the same log wherever the conversation is held. */
import { z } from 'zod';
import { type AgentOptions, defineTool, type LogEntry, type ModelPart } from '../../../src/index.ts';
import { nextTurn } from '../../../src/timeLimit.ts';
import { call, t } from '../../support/replyParts.ts';

export interface Host {
  log(): readonly LogEntry[];
  /** Resolves when a tool of this name runs, of the conversation or of a sub-agent. */
  started(name: string): Promise<void>;
  ask(act: object): Promise<unknown>;
  /** Another process continues. */
  restart(): Promise<void>;
}

type Replies = readonly (string | readonly ModelPart[])[];

export interface Scenario {
  name: string;
  replies: Replies;
  /** The replies to sub-agents, by their task. */
  tasks?: { readonly [task: string]: Replies };
  options?: Omit<AgentOptions, 'model'>;
  window?: object;
  /** Input and output of each reply. */
  tokens?: number;
  /** The model replies only to requests that have it. */
  context?: string;
  /** The probability that an attempt ends at each step. A repeated model call logs its diagnostics again. */
  deaths?: 0;
  /** The entries that the scenario is about. */
  expected: readonly LogEntry['type'][];
  play(host: Host): Promise<unknown>;
}

export async function until(what: string, isSo: () => boolean): Promise<void> {
  const end = Date.now() + 20_000;
  while (!isSo()) {
    if (Date.now() > end) throw new Error(`it did not come that ${what}`);
    await nextTurn();
  }
}
export const has = (host: Host, type: LogEntry['type'], times = 1): Promise<void> =>
  until(`${type} is in the log`, () => host.log().filter((entry) => entry.type === type).length >= times);
export const say = (host: Host, content: string, options: object = {}): Promise<unknown> =>
  host.ask({ type: 'send', content, options: { messageId: content.slice(0, 20), ...options } });

export const tool = (
  name: string,
  options: object = {},
  execute: (signal: AbortSignal) => unknown = () => `${name} is done`,
) =>
  defineTool({
    name,
    description: name,
    parameters: z.object({}),
    idempotent: true,
    ...options,
    execute: (_, { signal }) => execute(signal),
  });
/** Ends when it is aborted. */
export const waits = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason));
  });
export const asks = (host: Host, action: 'approve' | 'deny') => {
  const suspended = host.log().find((entry) => entry.type === 'tool-suspended');
  if (suspended?.type !== 'tool-suspended') throw new Error('no call waits');
  const { callId, suspension } = suspended;
  return host.ask({ type: 'decide', decision: { callId, suspension, action, by: 'somebody' } });
};
const long = (word: string, tokens: number): string => `${word} ${'x'.repeat(tokens * 4)}`;

const gate = { isOpen: false };
const open = async (signal: AbortSignal): Promise<string> => {
  while (!gate.isOpen) {
    signal.throwIfAborted();
    await nextTurn();
  }
  return 'open';
};

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'S001-01: a plain run',
    replies: ['done'],
    expected: ['run-started', 'user-message', 'agent-output', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
  {
    name: 'S001-06: a failing tool is an error result, and the model is called again',
    replies: [[call('c1', 'boom')], 'x'],
    options: {
      tools: [
        tool('boom', {}, () => {
          throw new Error('boom');
        }),
      ],
    },
    expected: ['tool-started', 'tool-result', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
  {
    name: 'three rounds of tools, two at once',
    replies: [[call('c1', 'one'), call('c2', 'one')], [call('c3', 'one')], [call('c4', 'one')], 'x'],
    options: { tools: [tool('one')], policies: { toolExecution: 'sequential' } },
    expected: ['tool-result', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
  ...(['approve', 'deny'] as const).map(
    (action): Scenario => ({
      name: `a call waits for a decision over a restart: ${action}`,
      replies: [[call('c1', 'ask')], 'x'],
      options: { tools: [tool('ask', { needsApproval: true })] },
      expected: ['tool-suspended', 'run-suspended', 'decision', 'run-resumed', 'run-stop'],
      play: async (host) => {
        await say(host, 'hi');
        await has(host, 'run-suspended');
        await host.restart();
        await asks(host, action);
        await host.restart();
        await host.ask({ type: 'resume', resumptionId: 'again' });
        await has(host, 'run-stop');
      },
    }),
  ),
  {
    name: 'a cancel ends a tool and the run',
    replies: [[call('c1', 'wait')], 'x'],
    options: { tools: [tool('wait', {}, waits)] },
    expected: ['tool-started', 'tool-result', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'tool-started');
      await host.ask({ type: 'cancel' });
      await has(host, 'run-stop');
    },
  },
  ...(['steer', 'followUp'] as const).map(
    (kind): Scenario => ({
      name: `a message arrives while a tool runs: ${kind}`,
      replies: [[call('c1', 'gate')], 'x', 'y'],
      options: { tools: [tool('gate', {}, open)], policies: { promoteFollowUpOn: ['completed'] } },
      expected: ['message-queued', 'tool-result', 'user-message', 'run-stop'],
      play: async (host) => {
        gate.isOpen = false;
        await say(host, 'hi');
        await has(host, 'tool-started');
        await say(host, 'and more', { kind });
        gate.isOpen = true;
        await has(host, 'run-stop', kind === 'steer' ? 1 : 2);
      },
    }),
  ),
  {
    name: 'a cancel ends a call that waits',
    replies: [[call('c1', 'ask')], 'x'],
    options: { tools: [tool('ask', { needsApproval: true })] },
    expected: ['run-suspended', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-suspended');
      await host.restart();
      await host.ask({ type: 'cancel' });
      await has(host, 'run-stop');
    },
  },
  {
    name: 'a message after the end of a run starts another one',
    replies: ['first', 'second'],
    expected: ['run-stop'],
    play: async (host) => {
      await say(host, 'one');
      await has(host, 'run-stop');
      await host.restart();
      await say(host, 'two');
      await has(host, 'run-stop', 2);
    },
  },
  {
    name: 'TRC-5: a limit ends the run',
    replies: [[call('c1', 'one')], [call('c2', 'one')], [call('c3', 'one')]],
    options: { tools: [tool('one')], policies: { limits: { turns: 2 } } },
    expected: ['run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
  {
    name: 'TRC-6: older messages become a summary',
    replies: [long('a', 300), long('b', 300), 'ok'],
    window: { contextWindow: 1_000, maxOutputTokens: 0 },
    options: { tools: [tool('one')] },
    expected: ['compaction', 'run-stop'],
    play: async (host) => {
      for (const [index, word] of ['first', 'second', 'third'].entries()) {
        await say(host, long(word, index === 2 ? 150 : 50));
        await has(host, 'run-stop', index + 1);
      }
    },
  },
  {
    name: 'a final answer with a schema, after one that is invalid',
    replies: ['18 degrees', '{"city":"Lisbon"}'],
    options: { output: z.object({ city: z.string() }) },
    expected: ['continuation', 'extension', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
  {
    name: 'a plugin adds to each request, and looks at each reply',
    replies: [[t('one'), call('c1', 'one')], [t('two'), call('c2', 'one')], 'three'],
    context: 'the words of the plugin',
    options: {
      tools: [tool('one')],
      plugins: [
        {
          name: 'adds',
          beforeInference: () => ({ context: 'the words of the plugin' }),
          afterInference: ({ reply }) => (reply ? undefined : { terminate: 'there is no reply' }),
          afterToolExecute: ({ call: { callId } }) => ({ context: `after ${callId}` }),
        },
      ],
    },
    expected: ['tool-result', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
  {
    name: 'a plugin changes the arguments of a call',
    replies: [[call('c1', 'echo', { word: 'one' })], 'x'],
    options: {
      tools: [
        defineTool({
          name: 'echo',
          description: 'echo',
          parameters: z.object({ word: z.string() }),
          idempotent: true,
          execute: ({ word }) => word,
        }),
      ],
      plugins: [{ name: 'changes', beforeToolExecute: () => ({ args: { word: 'changed' } }) }],
    },
    expected: ['tool-result', 'run-stop'],
    play: async (host) => {
      await say(host, 'hi');
      await has(host, 'run-stop');
    },
  },
];
