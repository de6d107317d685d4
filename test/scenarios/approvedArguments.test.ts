/**
 * The arguments that a person approves are the arguments that run (H-066): plugins rewrite the arguments of waiting
 * calls.
 */
import { describe, expect, it } from 'vitest';
import type { Decision, Json, PendingCall, Plugin } from '../../src/index.ts';
import { logEntrySchema } from '../../src/schema.ts';
import { type Bench, type BenchOptions, bench, entry, only, restart, resultText } from '../support/agentBench.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call } from '../support/scriptedReplies.ts';

type Rewrite = (args: { m: string }, decision: Decision | undefined) => Json | undefined;

const rewriter = (rewrite: Rewrite): Plugin => ({
  name: 'rewrites',
  beforeToolExecute({ call: { args }, decision }) {
    const made = rewrite(args as { m: string }, decision);
    return made === undefined ? undefined : { args: made };
  },
});

/** One call of `ask` with `{ m: 'a' }`, which waits. */
async function waiting(rewrite: Rewrite, options: BenchOptions = {}, needsApproval = true) {
  const echo = echoTool('ask', { needsApproval });
  const plugins = [rewriter(rewrite), ...(options.plugins ?? [])];
  const settings = { ...options, replies: [[call('c1', 'ask', { m: 'a' })], 'x'], tools: [echo.tool], plugins };
  const on = await bench(settings);
  await on.conversation.send('hi').result;
  return { ...on, settings };
}

/** Decides and resumes; the result of the call contains the arguments that ran. */
async function decided({ conversation }: Bench, decision: object): Promise<string> {
  expect(await conversation.decide({ callId: 'c1', ...decision } as Decision)).toBe('applied');
  await conversation.resume().result;
  return conversation.pending.length > 0 ? 'waits' : resultText(conversation.log(), 'c1');
}
const shown = ({ conversation }: Bench) => conversation.pending.map(({ args, suspension }) => ({ args, suspension }));

describe('H-066: a call that waits', () => {
  it('the pending list and the authorizer receive the arguments that will run', async () => {
    const judged: PendingCall[] = [];
    const authorize = (_: Decision, seen: PendingCall) => judged.push(seen) > 0;
    const on = await waiting(() => ({ m: 'mallory' }), { authorize });
    expect(shown(on)).toEqual([{ args: { m: 'mallory' }, suspension: 1 }]);
    expect(await decided(on, { action: 'approve' })).toBe('{"m":"mallory"}');
    expect(judged.map(({ args }) => args)).toEqual([{ m: 'mallory' }]);
  });

  it('the log contains those arguments at the suspension and at the start', async () => {
    const on = await waiting(() => ({ m: 'mallory' }));
    const suspended = await entry(on.conversation, 'tool-suspended');
    expect(suspended.args).toEqual({ m: 'mallory' });
    expect(logEntrySchema['~standard'].validate(suspended)).toEqual({ value: suspended });
    await decided(on, { action: 'approve' });
    expect((await entry(on.conversation, 'tool-started')).args).toEqual({ m: 'mallory' });
  });

  it("the suspension contains no arguments if the model's own are unchanged", async () => {
    const on = await waiting(() => ({ m: 'a' }));
    expect(await entry(on.conversation, 'tool-suspended')).not.toHaveProperty('args');
  });

  it('a restart keeps the arguments, and they run', async () => {
    const before = await waiting(({ m }) => ({ m: m.toUpperCase() }));
    const on = await restart(before, { ...before.settings, replies: ['x'] });
    expect(shown(on)).toEqual([{ args: { m: 'A' }, suspension: 1 }]);
    expect(await decided(on, { action: 'approve' })).toBe('{"m":"A"}');
  });

  it('the arguments include the changes of every plugin, whichever plugin suspends the call', async () => {
    const on = await waiting(() => ({ m: 'late' }), { plugins: [asks().plugin] }, false);
    expect(shown(on)).toEqual([{ args: { m: 'late' }, suspension: 1 }]);
    expect(await decided(on, { action: 'approve' })).toBe('{"m":"late"}');
  });

  it('a secret that a plugin inserts is used by the tool and hidden everywhere else', async () => {
    const on = await waiting(() => ({ m: 'token-4711' }), { secrets: ['token-4711'] });
    expect(shown(on)).toEqual([{ args: { m: '[redacted]' }, suspension: 1 }]);
    expect(await decided(on, { action: 'approve' })).toBe('{"m":"[redacted]"}');
    expect(JSON.stringify(on.conversation.log())).not.toContain('token-4711');
  });
});

describe('H-066: a replay that a plugin rewrites', () => {
  it('plugins receive the approved arguments; if no plugin changes them, they run', async () => {
    const seen: string[] = [];
    const on = await waiting((args, decision) => {
      seen.push(args.m);
      return decision ? undefined : { m: 'made' };
    });
    expect(await decided(on, { action: 'approve' })).toBe('{"m":"made"}');
    expect(seen).toEqual(['a', 'made']);
  });

  it('if the arguments differ from the approved ones, the call is suspended again, then runs as approved', async () => {
    const on = await waiting((_, decision) => (decision ? { m: 'other' } : undefined));
    expect(await decided(on, { action: 'approve' })).toBe('waits');
    expect(shown(on)).toEqual([{ args: { m: 'other' }, suspension: 2 }]);
    expect(only(on.conversation.log(), 'tool-started')).toEqual([]);
    expect(await decided(on, { action: 'approve' })).toBe('{"m":"other"}');
  });

  it('the call is suspended again even if a plugin suspended it and the tool needs no approval', async () => {
    const on = await waiting(
      (_, decision) => (decision ? { m: 'other' } : undefined),
      { plugins: [asks().plugin] },
      false,
    );
    expect(await decided(on, { action: 'approve' })).toBe('waits');
    expect(on.conversation.pending).toMatchObject([{ reason: 'permission', args: { m: 'other' } }]);
  });

  it('the call never runs if a plugin changes the arguments each time', async () => {
    const policies = { limits: { suspensionsPerCall: 2 } };
    const on = await waiting(({ m }) => ({ m: `${m}!` }), { policies });
    for (const args of [{ m: 'a!' }, { m: 'a!!' }]) {
      expect(shown(on).map((each) => each.args)).toEqual([args]);
      await decided(on, { action: 'approve' });
    }
    expect(only(on.conversation.log(), 'tool-started', 'tool-result')).toEqual(['tool-result c1 failed suspend_limit']);
  });

  it('an edited call is suspended again after a rewrite; the model still receives the note of the edit', async () => {
    const on = await waiting(({ m }, decision) => (decision ? { m: m.trim() } : undefined));
    expect(await decided(on, { action: 'edit', args: { m: ' b ' } })).toBe('waits');
    expect(shown(on)).toEqual([{ args: { m: 'b' }, suspension: 2 }]);
    const text = await decided(on, { action: 'approve' });
    expect(text).toContain('{"m":"b"}');
    expect(text).toContain('The user changed the arguments');
  });

  it('edited arguments that no plugin changes run', async () => {
    const on = await waiting((_, decision) => (decision ? undefined : { m: 'made' }));
    expect(await decided(on, { action: 'edit', args: { m: 'mine' } })).toContain('{"m":"mine"}');
    expect((await entry(on.conversation, 'tool-started')).args).toEqual({ m: 'mine' });
  });

  it('a plugin may put the answer to a question into the arguments', async () => {
    const answered: Rewrite = (_, decision) =>
      decision?.action === 'answer' ? { m: String(decision.payload) } : undefined;
    const on = await waiting(answered, { plugins: [asks().plugin] }, false);
    expect(await decided(on, { action: 'answer', payload: 'blue' })).toBe('{"m":"blue"}');
  });

  it('an answered question is suspended again if its new arguments need approval', async () => {
    const answered: Rewrite = (_, decision) =>
      decision?.action === 'answer' ? { m: String(decision.payload) } : undefined;
    const risky = echoTool('ask', { needsApproval: ({ m }) => m === 'risky' });
    const plugins = [rewriter(answered), asks().plugin];
    const on = await bench({ replies: [[call('c1', 'ask', { m: 'a' })], 'x'], tools: [risky.tool], plugins });
    await on.conversation.send('hi').result;
    expect(await decided(on, { action: 'answer', payload: 'risky' })).toBe('waits');
    expect(on.conversation.pending).toMatchObject([{ reason: 'permission', args: { m: 'risky' } }]);
  });
});

describe('H-066: an approval that arrives before the suspension', () => {
  /** Approves while the check of the call is running. */
  async function approvedEarly(args: Json | undefined) {
    const echo = echoTool('ask', { needsApproval: true });
    const plugin: Plugin = {
      name: 'slow',
      async beforeToolExecute({ decision }) {
        if (decision) return undefined;
        expect(await on.conversation.decide({ callId: 'c1', action: 'approve' })).toBe('held');
        return args === undefined ? undefined : { args };
      },
    };
    const replies = [[call('c1', 'ask', { m: 'a' })], 'x'];
    const on = await bench({ replies, tools: [echo.tool], plugins: [plugin] });
    await on.conversation.send('hi').result;
    return { on, echo };
  }

  it('the approval is used if the arguments are unchanged', async () => {
    const { echo } = await approvedEarly(undefined);
    expect(echo.ran).toEqual(['c1']);
  });

  it('the approval is not used for arguments that nobody has seen; the call is suspended', async () => {
    const { on, echo } = await approvedEarly({ m: 'mallory' });
    expect(echo.ran).toEqual([]);
    expect(shown(on)).toEqual([{ args: { m: 'mallory' }, suspension: 2 }]);
    expect(await decided(on, { action: 'approve' })).toBe('{"m":"mallory"}');
  });
});
