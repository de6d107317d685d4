/** Logs that are converted to stories, and to tests of these stories. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool, type LogEntry, subAgents } from '../../src/index.ts';
import { type Move, runScript, scriptOf, testOf } from '../../src/testing/index.ts';
import { call, scripted } from '../support/scriptedReplies.ts';
import { Bank } from './sampleAgents.ts';

const send: Move = { do: 'send', text: 'go' };
const transfer = (euros: number): Move => ({
  do: 'reply',
  calls: [{ name: 'transfer', args: { to: "O'Neil", euros } }],
});
const done: Move = { do: 'reply', text: 'done' };

const stories: Record<string, readonly Move[]> = {
  'an approval': [
    send,
    transfer(900),
    { do: 'decide', call: 1, action: 'approve' },
    { do: 'resume' },
    { do: 'tool', call: 1 },
    done,
  ],
  'a denial after a crash': [
    send,
    transfer(900),
    { do: 'decide', call: 1, action: 'deny' },
    { do: 'resume' },
    { do: 'crash' },
    { do: 'resume' },
    done,
  ],
  'trouble with the model': [
    send,
    { do: 'modelFails', retryable: true },
    { do: 'reply', text: '' },
    { do: 'reply', text: 'so', finish: 'pause' },
    done,
  ],
  'two calls, one that fails': [
    send,
    {
      do: 'reply',
      calls: [
        { name: 'balance', args: {} },
        { name: 'plan', args: { name: 'rent' } },
      ],
    },
    { do: 'tool', call: 2, made: 'fail' },
    { do: 'tool', call: 1, made: 'timeOut' },
    done,
  ],
  'a window that fills up': [
    { do: 'send', fills: 0.86 },
    { do: 'reply', text: 'so', finish: 'length' },
    { do: 'modelFails', retryable: true },
    { do: 'sumUp' },
    done,
  ],
  'a summary that fails for good': [
    { do: 'send', fills: 0.86 },
    { do: 'reply', text: 'so', finish: 'length' },
    { do: 'modelFails', retryable: false },
    done,
  ],
  'messages meanwhile': [
    send,
    { do: 'steer', text: 'also' },
    { do: 'followUp', text: 'then' },
    { do: 'takeBack' },
    transfer(1),
    { do: 'tool', call: 1 },
    done,
  ],
  'a cancel': [send, transfer(1), { do: 'cancel' }, { do: 'send', text: 'again' }, done],
  'a settlement': [
    send,
    transfer(1),
    { do: 'crash' },
    { do: 'settle', call: 1, how: 'didNotRun' },
    { do: 'resume' },
    done,
  ],
  'a request while a call waits': [send, transfer(900), { do: 'followUp', text: 'and?' }, { do: 'cancel' }, done],
};

/** Requests with one call each. */
function rewound() {
  const look = defineTool({
    name: 'look',
    description: 'Looks.',
    parameters: z.object({ at: z.number() }),
    execute: () => 'seen',
  });
  const replies = [1, 2, 3].flatMap((at) => [[call(`c${at}`, 'look', { at })], 'done']);
  return { agent: createAgent({ model: scripted(replies), tools: [look] }) };
}

describe('the script of a log', () => {
  it.each(Object.entries(stories))('%s', async (_, script) => {
    const { log } = await runScript(new Bank().agent(), script);
    expect(scriptOf(log)).toEqual(script);
  });

  it('the time that is up, and what a real tool threw', async () => {
    const script: Move[] = [send, { do: 'deadline' }];
    const { log } = await runScript(
      (world) => createAgent({ policies: { limits: { runMs: 1000 } }, ...world }),
      script,
    );
    expect(scriptOf(log)).toEqual(script);
  });

  it('rewound messages are left out, with the numbers of their calls', async () => {
    const { agent } = rewound();
    const conversation = await agent.open('a');
    await conversation.send('first').result;
    await conversation.send('second', { messageId: 'm2' }).result;
    await conversation.rewind('m2');
    await conversation.send('third').result;
    const expected: Move[] = [
      { do: 'send', text: 'first' },
      { do: 'reply', calls: [{ name: 'look', args: { at: 1 } }] },
      { do: 'tool', call: 1 },
      done,
      { do: 'send', text: 'third' },
      { do: 'reply', calls: [{ name: 'look', args: { at: 3 } }] },
      { do: 'tool', call: 2 },
      done,
    ];
    expect(scriptOf(conversation.log())).toEqual(expected);
    expect(testOf(conversation.log())).not.toContain('second');
    await agent.close();
  });

  it('a rewind to the first message leaves what comes after it', async () => {
    const { agent } = rewound();
    const conversation = await agent.open('a');
    await conversation.send('first', { messageId: 'm1' }).result;
    await conversation.rewind('m1');
    expect(scriptOf(conversation.log())).toEqual([]);
    await conversation.send('second').result;
    expect(scriptOf(conversation.log())[0]).toEqual({ do: 'send', text: 'second' });
    expect(testOf(conversation.log())).toContain("reason).toBe('completed')");
    await agent.close();
  });

  it('a waiting cycle that a rewind cancels is left out', async () => {
    const wait = defineTool({
      name: 'look',
      description: 'Looks.',
      parameters: z.object({ at: z.number() }),
      needsApproval: true,
      execute: () => 'seen',
    });
    const model = scripted([[call('c1', 'look', { at: 1 })], 'done']);
    const agent = createAgent({ model, tools: [wait] });
    const conversation = await agent.open('a');
    await conversation.send('first', { messageId: 'm1' }).result;
    await conversation.rewind('m1');
    await conversation.send('second').result;
    expect(scriptOf(conversation.log())).toEqual([{ do: 'send', text: 'second' }, done]);
    await agent.close();
  });

  it('a call that waits inside a sub-agent', async () => {
    const task = { id: 'a', task: 'use transfer' };
    const script: Move[] = [
      send,
      { do: 'reply', calls: [{ name: 'spawn_agents', args: { tasks: [task] } }] },
      { do: 'tool', call: 1 },
      { do: 'decide', call: 1, action: 'approve' },
      { do: 'resume' },
      { do: 'tool', call: 1 },
      done,
    ];
    const tools = [subAgents({ tools: [new Bank().transfer] })];
    const examples = { transfer: [{ args: { to: 'landlord', euros: 900 } }] };
    const { log } = await runScript((world) => createAgent({ tools, ...world }), script, { examples });
    expect(scriptOf(log)).toEqual(script);
  });

  it('a value that is no log has no moves', () => {
    expect(scriptOf([])).toEqual([]);
    expect(scriptOf([{ type: 'run-stop', reason: 'completed' } as LogEntry])).toEqual([]);
    const odd = [{ type: 'user-message', content: 7 }, { type: 'agent-output' }, null, 'nothing'];
    expect(scriptOf(odd as never)).toEqual([]);
    expect(testOf(odd as never)).toContain('runScript(agent, [');
  });
});

it('a test made of a log is a file for vitest', async () => {
  const { log } = await runScript(new Bank().agent(), stories['an approval'] ?? []);
  expect(testOf(log)).toBe(`import { expect, it } from 'vitest';
import { runScript } from 'runchart/testing';
// Its tools are executed: point them at a double. (world) => createAgent({ tools, …, ...world })
import { agent } from './agent.ts';

it('the model calls transfer({"to":"O\\'Neil","euros":900}), transfer is approved, it is resumed, transfer ends, the model answers: completed', async () => {
  const { result } = await runScript(agent, [
    { do: 'send', text: 'go' },
    { do: 'reply', calls: [{ name: 'transfer', args: { to: 'O\\'Neil', euros: 900 } }] },
    { do: 'decide', call: 1, action: 'approve' },
    { do: 'resume' },
    { do: 'tool', call: 1 },
    { do: 'reply', text: 'done' },
  ]);
  expect(result.reason).toBe('completed');
});
`);
});

describe('a test made of a log expects what runScript gives for its moves', () => {
  const ends: Record<string, [script: Move[], expected: string]> = {
    'a wait': [[send, transfer(900)], "result.termination).toBe('Suspended')"],
    'a wait with a message behind it': [
      [send, transfer(900), { do: 'followUp', text: 'and?' }],
      "result.termination).toBe('Suspended')",
    ],
    'a wait that was cancelled': [[send, transfer(900), { do: 'cancel' }], "result.reason).toBe('interrupted')"],
    'a run that is active': [[send, transfer(1)], "result.reason).toBe('interrupted')"],
    'a run that is active after one that ended': [
      [send, done, { do: 'send', text: 'again' }],
      "result.reason).toBe('interrupted')",
    ],
    'a process that died': [[send, transfer(1), { do: 'crash' }], "result.reason).toBe('interrupted')"],
  };
  it.each(Object.entries(ends))('%s', async (_, [script, expected]) => {
    const { log } = await runScript(new Bank().agent(), script);
    expect(testOf(log)).toContain(`expect(${expected};`);
    const { result } = await runScript(new Bank().agent(), scriptOf(log));
    expect(expected).toContain(expected.includes('reason') ? `'${result.reason}'` : `'${result.termination}'`);
  });
});
