/** Tests stories of moves on the real runtime with the user's own tools. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool, subAgents } from '../../src/index.ts';
import { type AgentWorld, type Move, type PathOutcome, runScript } from '../../src/testing/index.ts';
import { Bank } from './sampleAgents.ts';

const send: Move = { do: 'send' };
const calls = (...made: [name: string, args: object][]): Move => ({
  do: 'reply',
  calls: made.map(([name, args]) => ({ name, args: args as never })),
});
const answer: Move = { do: 'reply', text: 'done' };
const rent = { to: 'landlord', euros: 900 };
const outcomes = ({ log }: PathOutcome): string[] =>
  log.flatMap((entry) => (entry.type === 'tool-result' ? [`${entry.callId} ${entry.outcome}`] : []));

describe('a story in moves', () => {
  it('is followed by the real agent and its real tools', async () => {
    const bank = new Bank();
    const script: Move[] = [
      send,
      calls(['transfer', rent]),
      { do: 'decide', call: 1, action: 'approve' },
      { do: 'resume' },
      { do: 'tool', call: 1 },
      answer,
    ];
    const outcome = await runScript(bank.agent(), script, { outside: bank.outside });
    expect(outcome.path.name).toBe(
      'the model calls transfer({"to":"landlord","euros":900}), transfer is approved, it is resumed, transfer ends, the model answers: completed',
    );
    expect(outcome.result.termination).toBe('NaturalEnd');
    expect(bank.transfers).toEqual([rent]);
    expect(outcomes(outcome)).toEqual(['call1 succeeded']);
  });

  it('reports the state of the conversation if a move is impossible', async () => {
    const bank = new Bank();
    await expect(runScript(bank.agent(), [send, calls(['transfer', rent]), { do: 'tool', call: 1 }])).rejects.toThrow(
      'move 3 (transfer ends): call 1 does not run; the conversation is waiting, call 1 waits for a decision',
    );
  });

  it('holds each tool until its move, so that the story decides who ends first', async () => {
    const bank = new Bank();
    const both = calls(['balance', {}], ['plan', { name: 'rent' }]);
    const outcome = await runScript(bank.agent(), [
      send,
      both,
      { do: 'tool', call: 2 },
      { do: 'tool', call: 1, made: 'fail' },
      answer,
    ]);
    expect(outcomes(outcome)).toEqual(['call2 succeeded', 'call1 failed']);
  });

  it('lets a tool time out, fails a model, and lets the waits of retries pass at once', async () => {
    const bank = new Bank();
    const outcome = await runScript(bank.agent(), [
      send,
      { do: 'modelFails', retryable: true },
      calls(['balance', {}]),
      { do: 'tool', call: 1, made: 'timeOut' },
      answer,
    ]);
    expect(outcome.log.flatMap((entry) => (entry.type === 'tool-result' ? [entry.code] : []))).toEqual(['timeout']);
    expect(outcome.log.some(({ type }) => type === 'model-retry')).toBe(true);
  });

  it('takes back the message that waits last, whatever was delivered since it was sent', async () => {
    const bank = new Bank();
    const outcome = await runScript(bank.agent(), [
      send,
      calls(['balance', {}]),
      { do: 'followUp', text: 'And then?' },
      { do: 'steer', text: 'Quickly.' },
      { do: 'tool', call: 1 },
      { do: 'takeBack' },
      answer,
    ]);
    expect(outcome.result.termination).toBe('NaturalEnd');
    const messages = outcome.log.flatMap((entry) =>
      entry.type === 'user-message' || entry.type === 'message-returned' ? [entry.type] : [],
    );
    expect(messages).toEqual(['user-message', 'user-message', 'message-returned']);
  });

  it('fails where the message that waits can no longer be taken back', async () => {
    const waiting: Move[] = [send, { do: 'followUp' }, { do: 'crash' }];
    await expect(runScript(new Bank().agent(), [...waiting, { do: 'takeBack' }])).rejects.toThrow(
      'move 4 (the message is taken back): the message that waits belongs to a process or a run that has ended; the conversation is idle, 1 in the queue',
    );
  });

  it('brings a move into the middle of a phase, and of the storing of an end', async () => {
    const heard: string[] = [];
    const play = async (...script: Move[]): Promise<PathOutcome> => {
      const plugin = { name: 'slow', runEnd: () => void heard.push('end') };
      const { tools } = new Bank();
      return runScript((world) => createAgent({ tools, plugins: [plugin], ...world }), script);
    };
    const waits = [send, calls(['transfer', rent])];
    const inPhase = await play(...waits, { do: 'cancel', during: 'runEnd' });
    expect(inPhase.path.name).toContain('it is cancelled during runEnd');
    expect([inPhase.pending, outcomes(inPhase), heard.length]).toEqual([[], ['call1 cancelled'], 1]);
    const stored = await play(...waits, { do: 'cancel', during: 'storing' });
    expect(outcomes(stored)).toEqual(['call1 cancelled']);
    await expect(play(...waits, { do: 'cancel', during: 'afterInference' })).rejects.toThrow(
      'nothing is under way in afterInference; the conversation is waiting, call 1 waits for a decision',
    );
  });

  it('fills the window, and has earlier messages summed up', async () => {
    const { tools } = new Bank();
    const agent = (world: AgentWorld) => createAgent({ tools, ...world });
    const full: Move[] = [{ do: 'send', fills: 0.86 }, calls(['balance', {}]), { do: 'tool', call: 1 }];
    const outcome = await runScript(agent, [...full, { do: 'sumUp' }, answer]);
    expect(outcome.log.filter(({ type }) => type === 'compaction')).toHaveLength(1);
    expect(outcome.path.name).toMatch(
      /^a request comes that fills the window, .*, earlier messages are summed up, the model answers: completed$/,
    );
    await expect(runScript(agent, [...full, answer])).rejects.toThrow('the model is asked for a summary: sumUp');
    const failed = await runScript(agent, [...full, { do: 'modelFails', retryable: false }, answer]);
    expect(failed.log.some((entry) => entry.type === 'notice' && entry.code === 'compaction_failed')).toBe(true);
    const tooMuch = await runScript(agent, [{ do: 'send', fills: 1 }]);
    expect(tooMuch.result.termination).not.toBe('NaturalEnd');
  });

  it('goes on in another process where the one that ran has died', async () => {
    const bank = new Bank();
    const outcome = await runScript(
      bank.agent(),
      [
        send,
        calls(['plan', { name: 'food', euros: 5 }]),
        { do: 'crash' },
        { do: 'resume' },
        { do: 'tool', call: 1 },
        answer,
      ],
      { outside: bank.outside },
    );
    expect(outcomes(outcome)).toEqual(['call1 succeeded']);
    expect(outcome.result.termination).toBe('NaturalEnd');
  });

  it('loses the result of a tool that has run to its end, with its process', async () => {
    const bank = new Bank();
    const story = async (crash: Move) => {
      const paid = await runScript(bank.agent(), [send, calls(['transfer', { to: 'a', euros: 1 }]), crash], {
        outside: bank.outside,
      });
      return [bank.transfers.length, paid.path.name];
    };
    expect(await story({ do: 'crash' })).toEqual([0, expect.stringMatching(/, the process dies: crashed$/)]);
    const lost = /, the process dies with the result of transfer: crashed$/;
    expect(await story({ do: 'crash', lost: 1 })).toEqual([1, expect.stringMatching(lost)]);
    await expect(story({ do: 'crash', lost: 2 })).rejects.toThrow(/call 2 does not run/);
  });

  it('decides a call that waits inside a sub-agent', async () => {
    const bank = new Bank();
    const spawn = subAgents({ tools: [bank.transfer] });
    const script: Move[] = [
      send,
      calls(['spawn_agents', { tasks: [{ id: 'a', task: 'use transfer' }] }]),
      { do: 'tool', call: 1 },
      { do: 'decide', call: 1, action: 'approve' },
      { do: 'resume' },
      { do: 'tool', call: 1 },
      answer,
    ];
    const outcome = await runScript((world) => createAgent({ tools: [spawn], ...world }), script, {
      examples: { transfer: [{ args: rent }] },
    });
    expect(bank.transfers).toEqual([rent]);
    expect(outcome.result.termination).toBe('NaturalEnd');
  });

  it('ends with a message that is taken back, an outcome that is settled, and a time that is up', async () => {
    const bank = new Bank();
    const transfer = calls(['transfer', { to: 'a', euros: 1 }]);
    const settled = await runScript(bank.agent(), [
      send,
      transfer,
      { do: 'crash' },
      { do: 'settle', call: 1, how: 'ran', result: 'it was paid' },
      { do: 'resume' },
      { do: 'followUp' },
      { do: 'takeBack' },
      answer,
    ]);
    expect(outcomes(settled)).toEqual(['call1 unknown']);
    expect(settled.log.filter(({ type }) => type === 'message-returned')).toHaveLength(1);
    const late = await runScript(
      (world) => createAgent({ policies: { limits: { runMs: 1000 } }, ...world }),
      [send, { do: 'deadline' }],
    );
    expect(late.path.name).toBe('the time is up: interrupted (timeout)');
  });
});

describe('the end of a story', () => {
  const play = (...script: Move[]): Promise<PathOutcome> => runScript(new Bank().agent(), script);
  const waits = [send, calls(['transfer', rent])];

  it('is that of the last run in the log: a cancel ends the run that waits', async () => {
    const { path, result } = await play(...waits, { do: 'cancel' });
    expect(path.name).toMatch(/, it is cancelled: interrupted \(cancelled\)$/);
    expect([path.ends, result.termination, result.reason, result.pending]).toEqual([
      ...['Cancelled', 'Cancelled', 'interrupted'],
      [],
    ]);
  });

  it('is that of the run that waits, where a message behind it never began', async () => {
    const { path, result } = await play(...waits, { do: 'followUp' });
    expect([path.ends, result.termination, result.reason, result.subtype]).toEqual([
      ...['Suspended', 'Suspended', null, 'suspended'],
    ]);
    expect(path.name).toMatch(/: waiting$/);
  });

  it('is in the log of a process that has died', async () => {
    const waiting = await play(...waits, { do: 'crash' });
    expect(waiting.path.ends).toBe('crashed');
    expect(waiting.result).toMatchObject({ termination: 'Suspended', reason: null, subtype: 'suspended', turns: 1 });
    expect(waiting.result.pending.map(({ callId }) => callId)).toEqual(['call1']);
    const answered = await play(send, answer, { do: 'crash' });
    expect(answered.result).toMatchObject({ termination: 'NaturalEnd', reason: 'completed', text: 'done' });
    const cutOff = await play(send, calls(['balance', {}]), { do: 'crash' });
    expect(cutOff.result).toMatchObject({ termination: 'Cancelled', cause: 'crash', reason: 'interrupted' });
    expect(cutOff.result.calls).toMatchObject([{ callId: 'call1', name: 'balance' }]);
  });

  it('has nothing done where nothing began', async () => {
    expect((await play({ do: 'resume' })).result.termination).toBe('NaturalEnd');
    expect((await play({ do: 'crash' })).result).toMatchObject({ termination: 'Cancelled', cause: 'crash' });
  });
});

describe('a story fails with', () => {
  const tool = (changes: object) =>
    defineTool({ name: 'act', description: '', parameters: z.object({}), execute: () => 'done', ...changes } as never);
  const run = (changes: object, script: Move[], outside = { reset: () => {}, state: () => null as never }) =>
    runScript((world) => createAgent({ tools: [tool(changes)], ...world }), script, { outside, abortMs: 60 });
  const act = calls(['act', {}]);

  it('a tool that does not heed its signal', async () => {
    const deaf = { execute: () => new Promise((resolve) => setTimeout(resolve, 2_000)) };
    await expect(run(deaf, [send, act, { do: 'cancel' }])).rejects.toThrow(
      'abort: act had not settled 60 ms after it was cancelled',
    );
  });

  it('a tool that continues and changes the world after a cancel', async () => {
    let count = 0;
    const late = {
      execute: async () => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        count += 1;
      },
    };
    const outside = {
      reset: () => {
        count = 0;
      },
      state: () => count as never,
    };
    await expect(run(late, [send, act, { do: 'cancel' }], outside)).rejects.toThrow('abort: act went on');
  });

  it('a tool that is declared readOnly and writes, and one that is declared idempotent and counts', async () => {
    let count = 0;
    const counts = () => {
      count += 1;
      return count;
    };
    const outside = {
      reset: () => {
        count = 0;
      },
      state: () => count as never,
    };
    await expect(
      run({ readOnly: true, execute: counts }, [send, act, { do: 'tool', call: 1 }, answer], outside),
    ).rejects.toThrow('readOnly: act');
    const again: Move[] = [send, act, { do: 'crash' }, { do: 'resume' }, { do: 'tool', call: 1 }, answer];
    await expect(run({ idempotent: true, execute: counts }, again, outside)).rejects.toThrow('idempotent: act');
  });

  it('an unknown option', async () => {
    const options = { outsides: {} } as never;
    await expect(runScript((world) => createAgent(world), [send], options)).rejects.toThrow(
      'the option outsides is unknown',
    );
  });

  it('an agent that does not use its world', async () => {
    await expect(runScript(({ model }) => createAgent({ model }), [send])).rejects.toThrow(
      "the agent does not use the world's ports and store: spread the world into it last",
    );
  });
});
