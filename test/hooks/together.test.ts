/** The combined result of several hooks of one event, and the effect of each field of an answer on each event. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/index.ts';
import { type Hook, type HookEvent, type HookOptions, type HookOutput, hooks, permissions } from '../../src/node.ts';
import { bench } from '../support/agentBench.ts';
import { base64, dot } from '../support/samplePictures.ts';
import { call } from '../support/scriptedReplies.ts';

const says = (output: HookOutput): Hook => ({ run: () => output });

interface Setting {
  /** The result of the tool. */
  answer?: unknown;
  asks?: boolean;
}

/** A run with one call of `act`. */
async function run(options: HookOptions, { answer = 'done', asks = false }: Setting = {}) {
  const ran: unknown[] = [];
  const tool = defineTool({
    name: 'act',
    description: '',
    parameters: z.object({ n: z.number() }),
    execute: ({ n }) => {
      ran.push(n);
      return answer;
    },
  });
  const plugins = [hooks(options), ...(asks ? [permissions({ ask: ['act'] })] : [])];
  const made = await bench({ tools: [tool], replies: [[call('c1', 'act', { n: 1 })], 'end', 'end', 'end'], plugins });
  const result = await made.conversation.send('go').result;
  const log = made.conversation.log();
  await made.agent.close();
  return { ...made, result, ran, log };
}

describe('a matcher', () => {
  it.each([
    ['act', true],
    ['a.t', true],
    ['x|act|y', true],
    ['ac|t', false],
    ['act|', true],
    ['a|b', false],
    ['ct', false],
    ['ac', false],
    ['Act', false],
    ['', true],
    ['*', true],
    ['.*', true],
  ])('%j is compared with the whole name, and so is each of its alternatives: %s', async (matcher, fits) => {
    const { ran } = await run({ PreToolUse: [{ ...says({ decision: 'block' }), matcher }] });
    expect(ran).toEqual(fits ? [] : [1]);
  });
});

describe('an answer with other arguments', () => {
  it.each<HookEvent>(['SessionStart', 'UserPromptSubmit', 'PostToolUse', 'Stop'])(
    'returned to %s it is a failure that the log names, since no call is about to run',
    async (event) => {
      const { log, ran } = await run({ [event]: [says({ updatedInput: { n: 2 } })] });
      const diagnostics = log.flatMap((entry) => (entry.type === 'diagnostic' ? [[entry.code, entry.detail]] : []));
      expect(diagnostics).toEqual([['hook_error', { event, message: expect.stringContaining(`not for ${event}`) }]]);
      expect(ran).toEqual([1]);
    },
  );

  it.each<[string, HookOutput[], unknown[]]>([
    ['allows them if it allows the call itself', [{ updatedInput: { n: 2 }, decision: 'allow' }], [2]],
    ['is asked about if it contains nothing else', [{ updatedInput: { n: 2 } }], []],
    [
      'is asked about if only an earlier hook allowed the call',
      [{ decision: 'allow' }, { updatedInput: { n: 2 } }],
      [],
    ],
    ['is allowed by a hook after it', [{ updatedInput: { n: 2 } }, { decision: 'allow' }], [2]],
    [
      'wins as the last of several',
      [
        { updatedInput: { n: 2 }, decision: 'allow' },
        { updatedInput: { n: 3 }, decision: 'allow' },
      ],
      [3],
    ],
  ])('returned to PermissionRequest, it %s', async (_, answers, expected) => {
    const { ran } = await run({ PermissionRequest: answers.map(says) }, { asks: true });
    expect(ran).toEqual(expected);
  });
});

describe('hooks after a call', () => {
  it.each<[string, HookOutput[], string | undefined]>([
    ['adds the context of one', [{ additionalContext: 'a' }], 'a'],
    ['adds each context, then each objection', [{ decision: 'block', reason: 'no' }], 'no'],
    ['adds nothing for an objection without a reason', [{ additionalContext: 'a' }, { decision: 'block' }], 'a'],
    [
      'adds those of both',
      [{ additionalContext: 'a' }, { additionalContext: 'b', decision: 'block', reason: 'no' }],
      'a\nb\nno',
    ],
    ['adds nothing without an answer', [{}, { reason: 'no' }], undefined],
  ])('%s', async (_, answers, expected) => {
    const { model } = await run({ PostToolUse: answers.map(says) });
    const [before = '', after = ''] = model.calls.map(({ system }) => system);
    expect(after.slice(before.length).trim()).toBe(expected ?? '');
  });

  it('they suppress the output if one of them requests it', async () => {
    for (const answers of [
      [{ suppressOutput: true }, {}],
      [{}, { suppressOutput: true }],
      [{ suppressOutput: true }, { suppressOutput: false }],
    ]) {
      const { model } = await run({ PostToolUse: answers.map(says) }, { answer: 'secret' });
      expect(JSON.stringify(model.calls[1]?.messages)).not.toContain('secret');
    }
    const { model } = await run({ PostToolUse: [says({}), says({ suppressOutput: false })] }, { answer: 'plain' });
    expect(JSON.stringify(model.calls[1]?.messages)).toContain('plain');
  });

  it('they receive the texts of a result, and the kind of every other part', async () => {
    const results: unknown[] = [];
    const answer = [
      { type: 'text', text: 'drawn' },
      { type: 'image', mediaType: 'image/png', data: base64(dot) },
    ];
    await run({ PostToolUse: [{ run: ({ result }) => void results.push(result) }] }, { answer });
    expect(results).toEqual(['drawn\n[image]']);
  });
});

describe('a Stop hook that continues the run', () => {
  it.each<[HookOutput, string]>([
    [{ continue: true, reason: 'a', additionalContext: 'b', stopReason: 'c' }, 'a'],
    [{ continue: true, additionalContext: 'b', stopReason: 'c' }, 'b'],
    [{ continue: true, stopReason: 'c' }, 'c'],
    [{ decision: 'block', reason: 'a' }, 'a'],
    [{ continue: true }, 'A hook wants you to go on.'],
  ])('%j sends the model %j', async (answer, words) => {
    let asked = 0;
    const once: Hook = { run: () => (asked++ === 0 ? answer : {}) };
    const { log } = await run({ Stop: [once] });
    expect(log.flatMap((entry) => (entry.type === 'continuation' ? [entry.text] : []))).toEqual([words]);
  });

  it('it is the last one called, unlike one that lets the run end', async () => {
    const asked: string[] = [];
    let times = 0;
    const names = (name: string, answer: () => HookOutput): Hook => ({
      run: () => {
        asked.push(name);
        return answer();
      },
    });
    await run({
      Stop: [
        names('a', () => ({ continue: false })),
        names('b', () => ({ continue: times++ === 0 })),
        names('c', () => ({})),
      ],
    });
    expect(asked).toEqual(['a', 'b', 'a', 'b', 'c']);
  });
});
