/** What a person is asked about is what runs (H-066): calls that wait while a plugin rewrites their arguments. */
import { describe, expect, it } from 'vitest';
import type { Decision, Json, PendingCall, Plugin } from '../../src/index.ts';
import { logEntrySchema } from '../../src/schema.ts';
import { type Bench, type BenchOptions, bench, entry, only, restart, resultText } from '../support/agent.ts';
import { call } from '../support/model.ts';
import { asks, echoTool } from '../support/tools.ts';

type Rewrite = (given: { m: string }, decision: Decision | undefined) => Json | undefined;

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

/** Decides and goes on; what runs is in the result of the call. */
async function decided({ conversation }: Bench, decision: object): Promise<string> {
  expect(await conversation.decide({ callId: 'c1', ...decision } as Decision)).toBe('applied');
  await conversation.resume().result;
  return conversation.pending.length > 0 ? 'waits' : resultText(conversation.log(), 'c1');
}
const shown = ({ conversation }: Bench) => conversation.pending.map(({ args, suspension }) => ({ args, suspension }));

describe('H-066: a call that waits', () => {
  it('is shown with the arguments that will run, to whoever lists it and to whoever authorizes', async () => {
    const judged: PendingCall[] = [];
    const authorize = (_: Decision, seen: PendingCall) => judged.push(seen) > 0;
    const on = await waiting(() => ({ m: 'mallory' }), { authorize });
    expect(shown(on)).toEqual([{ args: { m: 'mallory' }, suspension: 1 }]);
    expect(await decided(on, { action: 'approve' })).toBe('{"m":"mallory"}');
    expect(judged.map(({ args }) => args)).toEqual([{ m: 'mallory' }]);
  });

  it('has those arguments in the log, at its suspension and at its start', async () => {
    const on = await waiting(() => ({ m: 'mallory' }));
    const suspended = await entry(on.conversation, 'tool-suspended');
    expect(suspended.args).toEqual({ m: 'mallory' });
    expect(logEntrySchema['~standard'].validate(suspended)).toEqual({ value: suspended });
    await decided(on, { action: 'approve' });
    expect((await entry(on.conversation, 'tool-started')).args).toEqual({ m: 'mallory' });
  });

  it('has no arguments at its suspension where they are as the model wrote them', async () => {
    const on = await waiting(() => ({ m: 'a' }));
    expect(await entry(on.conversation, 'tool-suspended')).not.toHaveProperty('args');
  });

  it('shows the same after a restart, and runs it', async () => {
    const before = await waiting(({ m }) => ({ m: m.toUpperCase() }));
    const on = await restart(before, { ...before.settings, replies: ['x'] });
    expect(shown(on)).toEqual([{ args: { m: 'A' }, suspension: 1 }]);
    expect(await decided(on, { action: 'approve' })).toBe('{"m":"A"}');
  });

  it('shows what every plugin made of it, whichever of them suspends it', async () => {
    const on = await waiting(() => ({ m: 'late' }), { plugins: [asks().plugin] }, false);
    expect(shown(on)).toEqual([{ args: { m: 'late' }, suspension: 1 }]);
    expect(await decided(on, { action: 'approve' })).toBe('{"m":"late"}');
  });

  it('runs with the secret that a plugin puts in, and shows it to nobody', async () => {
    const on = await waiting(() => ({ m: 'token-4711' }), { secrets: ['token-4711'] });
    expect(shown(on)).toEqual([{ args: { m: '[redacted]' }, suspension: 1 }]);
    expect(await decided(on, { action: 'approve' })).toBe('{"m":"[redacted]"}');
    expect(JSON.stringify(on.conversation.log())).not.toContain('token-4711');
  });
});

describe('H-066: a replay that a plugin rewrites', () => {
  it('shows plugins the arguments that were approved; left alone, those run', async () => {
    const seen: string[] = [];
    const on = await waiting((given, decision) => {
      seen.push(given.m);
      return decision ? undefined : { m: 'made' };
    });
    expect(await decided(on, { action: 'approve' })).toBe('{"m":"made"}');
    expect(seen).toEqual(['a', 'made']);
  });

  it('is asked about again where it is not what was approved, and then runs as approved', async () => {
    const on = await waiting((_, decision) => (decision ? { m: 'other' } : undefined));
    expect(await decided(on, { action: 'approve' })).toBe('waits');
    expect(shown(on)).toEqual([{ args: { m: 'other' }, suspension: 2 }]);
    expect(only(on.conversation.log(), 'tool-started')).toEqual([]);
    expect(await decided(on, { action: 'approve' })).toBe('{"m":"other"}');
  });

  it('is asked about again also where a plugin suspended it and the tool needs no approval', async () => {
    const on = await waiting(
      (_, decision) => (decision ? { m: 'other' } : undefined),
      { plugins: [asks().plugin] },
      false,
    );
    expect(await decided(on, { action: 'approve' })).toBe('waits');
    expect(on.conversation.pending).toMatchObject([{ reason: 'permission', args: { m: 'other' } }]);
  });

  it('never runs where a plugin makes something else of it each time', async () => {
    const policies = { limits: { suspensionsPerCall: 2 } };
    const on = await waiting(({ m }) => ({ m: `${m}!` }), { policies });
    for (const args of [{ m: 'a!' }, { m: 'a!!' }]) {
      expect(shown(on).map((each) => each.args)).toEqual([args]);
      await decided(on, { action: 'approve' });
    }
    expect(only(on.conversation.log(), 'tool-started', 'tool-result')).toEqual(['tool-result c1 failed suspend_limit']);
  });

  it('after an edit is asked about again; the model is still told that the arguments were edited', async () => {
    const on = await waiting(({ m }, decision) => (decision ? { m: m.trim() } : undefined));
    expect(await decided(on, { action: 'edit', args: { m: ' b ' } })).toBe('waits');
    expect(shown(on)).toEqual([{ args: { m: 'b' }, suspension: 2 }]);
    const text = await decided(on, { action: 'approve' });
    expect(text).toContain('{"m":"b"}');
    expect(text).toContain('The user changed the arguments');
  });

  it('leaves an edit alone: the arguments of the person run', async () => {
    const on = await waiting((_, decision) => (decision ? undefined : { m: 'made' }));
    expect(await decided(on, { action: 'edit', args: { m: 'mine' } })).toContain('{"m":"mine"}');
    expect((await entry(on.conversation, 'tool-started')).args).toEqual({ m: 'mine' });
  });

  it('of an answered question may put the answer into the arguments', async () => {
    const answered: Rewrite = (_, decision) =>
      decision?.action === 'answer' ? { m: String(decision.payload) } : undefined;
    const on = await waiting(answered, { plugins: [asks().plugin] }, false);
    expect(await decided(on, { action: 'answer', payload: 'blue' })).toBe('{"m":"blue"}');
  });

  it('of an answered question needs the approval that its new arguments need', async () => {
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

describe('H-066: an approval that comes before the call waits', () => {
  /** Approves while the check of the call is under way. */
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

  it('holds where the arguments stay as they were', async () => {
    const { echo } = await approvedEarly(undefined);
    expect(echo.ran).toEqual(['c1']);
  });

  it('does not hold for arguments that nobody could see: they are asked about', async () => {
    const { on, echo } = await approvedEarly({ m: 'mallory' });
    expect(echo.ran).toEqual([]);
    expect(shown(on)).toEqual([{ args: { m: 'mallory' }, suspension: 2 }]);
    expect(await decided(on, { action: 'approve' })).toBe('{"m":"mallory"}');
  });
});
