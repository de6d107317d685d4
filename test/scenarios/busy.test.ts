/**
 * A plain message during a run, and the working directory of tools (docs/internals/contracts.md, REQ-BED-002 and
 * REQ-BED-010).
 */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ConfigurationError, defineTool, type Live, type LogEntry, RunchartError } from '../../src/index.ts';
import { type Bench, bench, entry, only, story } from '../support/agentBench.ts';
import { asks, echoTool, gateTool } from '../support/scenarioTools.ts';
import { call, deaf, during, finish, lines, t } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';

/** The error of a plain send; the log is the same before and after. */
function refusal({ conversation }: Bench): { code: string; message: string } {
  const before = story(conversation.log());
  const { queue, status } = conversation;
  try {
    conversation.send('X');
  } catch (error) {
    expect(story(conversation.log())).toEqual(before);
    expect([conversation.queue, conversation.status]).toEqual([queue, status]);
    if (RunchartError.isRunchartError(error)) return error;
  }
  throw new Error('the message was not refused');
}

describe('whileActive reject', () => {
  it('S003-02: during a model call the agent is busy, and nothing changes', async () => {
    const on = await bench({ replies: [deaf()] });
    const run = on.conversation.send('hi');
    await on.clock.advance(0);
    expect(refusal(on)).toMatchObject({ code: 'agent_busy', message: expect.stringContaining('agent is busy') });
    await run.cancel();
    expect(on.model.calls).toHaveLength(1);
  });

  it('S003-02: while a tool runs the agent is busy, and nothing changes', async () => {
    const gate = gateTool();
    const on = await bench({ replies: [[call('c1', 'gate')], 'x'], tools: [gate.tool] });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    expect(refusal(on)).toMatchObject({ code: 'agent_busy', message: expect.stringContaining('agent is busy') });
    gate.release('c1');
    expect((await run.result).text).toBe('x');
  });

  it('S003-02: during a cancel the error names the cancel, whatever is being stored', async () => {
    const store = troubledStore({ synchronous: false });
    const on = await bench({ replies: [deaf()], store });
    on.conversation.send('hi');
    await on.clock.advance(0);
    store.trouble((entries) => (entries.some(({ type }) => type === 'run-stop') ? 'stuck' : 'stored'));
    const cancelled = on.conversation.cancel();
    await on.clock.advance(0);
    expect(on.conversation.status).toBe('cancelling');
    expect(refusal(on)).toMatchObject({
      code: 'cancellation_in_progress',
      message: expect.stringContaining('cancellation in progress'),
    });
    await on.clock.until(cancelled);
  });

  it('while a call waits, the error of whileSuspended reject names decide, resume and cancel', async () => {
    const on = await bench({
      replies: [[call('c1', 'ask', { m: 'a' })]],
      tools: [echoTool('ask').tool],
      plugins: [asks().plugin],
      policies: { whileSuspended: 'reject' },
    });
    await on.conversation.send('hi').result;
    const { code, message } = refusal(on);
    expect(code).toBe('agent_busy');
    for (const word of ['agent is busy', 'decide()', 'resume()', 'cancel()']) expect(message).toContain(word);
    expect(on.conversation.steer('S').messageId).not.toBe('');
    expect(on.conversation.queue.map(({ kind }) => kind)).toEqual(['steer']);
  });
});

describe('whileActive steer and followUp', () => {
  it('steer: a plain message is delivered in the active run, and its run is that one', async () => {
    const sent: { run?: unknown } = {};
    const on: Bench = await bench({
      replies: [
        during(() => {
          sent.run = on.conversation.send('S');
        }, 'A1'),
        'A2',
      ],
      policies: { whileActive: 'steer' },
    });
    const run = on.conversation.send('P');
    expect((await run.result).text).toBe('A2');
    expect(sent.run).toBe(run);
    expect(lines(on.conversation.messages())).toEqual(['user P', 'assistant A1', 'user S', 'assistant A2']);
    expect(only(on.conversation.log(), 'user-message')).toEqual(['user-message direct P', 'user-message steer S']);
  });

  it('followUp: a plain message is the next request, and has a run of its own', async () => {
    const gate = gateTool();
    const on = await bench({
      replies: [[call('c1', 'gate')], 'A1', 'A2'],
      tools: [gate.tool],
      policies: { whileActive: 'followUp' },
    });
    const run = on.conversation.send('P');
    await gate.begun('c1');
    const later = on.conversation.send('F');
    expect(later.id).not.toBe(run.id);
    gate.release('c1');
    expect((await run.result).text).toBe('A1');
    expect((await later.result).text).toBe('A2');
    expect(only(on.conversation.log(), 'user-message')).toEqual(['user-message direct P', 'user-message followUp F']);
  });

  it.each(['steer', 'followUp'] as const)('a message is queued as %s during a cancel', async (whileActive) => {
    const store = troubledStore({ synchronous: false });
    const on = await bench({ replies: [deaf(), 'A2'], store, policies: { whileActive, promoteFollowUpOn: [] } });
    on.conversation.send('P');
    await on.clock.advance(0);
    let release = (): void => undefined;
    const gone = new Promise<void>((resolve) => {
      release = resolve;
    });
    store.trouble((entries) => (entries.some(({ type }) => type === 'run-stop') ? { after: gone } : 'stored'));
    const cancelled = on.conversation.cancel();
    await on.clock.advance(0);
    on.conversation.send('X');
    release();
    await on.clock.until(cancelled);
    await on.clock.advance(0);
    expect(on.conversation.queue.map(({ kind }) => kind)).toEqual([whileActive]);
  });
});

describe('one answer', () => {
  it('S003-05: a text answer leads to idle, with one message, its usage, and one notification that the agent is done', async () => {
    const on = await bench({ replies: [[t('hello'), finish('stop', 7)]] });
    const live: Live[] = [];
    on.conversation.live$.subscribe((signal) => live.push(signal));
    const result = await on.conversation.send('hi').result;
    expect(on.conversation.status).toBe('idle');
    expect(only(on.conversation.log(), 'agent-output')).toEqual(['agent-output hello']);
    expect(await entry(on.conversation, 'model-reply')).toMatchObject({ usage: { inputTokens: 7, outputTokens: 7 } });
    expect(result.usage).toMatchObject({ inputTokens: 7, outputTokens: 7 });
    expect(live.filter(({ type }) => type === 'status').at(-1)).toEqual({ type: 'status', status: 'idle' });
    expect(only(on.conversation.log(), 'run-stop')).toEqual(['run-stop completed end_turn']);
  });
});

describe('durable entries before an effect', () => {
  it.each([{ synchronous: true }, { synchronous: false }])(
    'S003-04: a model call and a tool start after their entries are durable (%o)',
    async (how) => {
      const found: string[] = [];
      const store = troubledStore(how);
      /** The last entry that a store has kept. */
      const last = (): string => story(on.conversation.log()).at(-1) ?? '';
      const look = defineTool({
        name: 'look',
        description: 'Looks.',
        parameters: z.object({}),
        execute: () => void found.push(last()),
      });
      const on: Bench = await bench({
        replies: [during(() => found.push(last()), [call('c1', 'look')]), during(() => found.push(last()), 'x')],
        tools: [look],
        store,
      });
      await on.conversation.send('hi').result;
      expect(found).toEqual(['checkpoint UserMessage', 'tool-started c1', 'checkpoint ToolResultsCommitted']);
      expect(store.tried.flat()).toEqual(on.conversation.log());
    },
  );
});

describe('a subscriber that arrives during a run', () => {
  it('S003-31: it receives the current state and the messages so far, then every live entry once', async () => {
    const gate = gateTool();
    const on = await bench({ replies: [[t('let me see'), call('c1', 'gate')], 'done'], tools: [gate.tool] });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    expect(on.conversation.status).toBe('active');
    const entries: LogEntry[] = [];
    const states: string[] = [];
    on.conversation.view$.subscribe(({ state }) => states.push(state));
    on.conversation.log$().subscribe((each) => entries.push(each));
    expect(states).toEqual(['active']);
    expect(story(entries)).toContain('agent-output let me see');
    gate.release('c1');
    await run.result;
    expect(entries).toEqual(on.conversation.log());
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index));
    expect(states.at(-1)).toBe('idle');
  });
});

describe('the working directory', () => {
  it("S003-28: each tool starts in the conversation's directory, wherever an earlier tool changed to", async () => {
    const begun: string[] = [];
    const cd = defineTool({
      name: 'cd',
      description: 'Goes somewhere.',
      parameters: z.object({}),
      execute(_, context) {
        begun.push(context.cwd);
        try {
          context.cwd = '/elsewhere';
        } catch {
          // The global may be read-only.
        }
      },
    });
    const on = await bench({ replies: [[call('c1', 'cd')], [call('c2', 'cd')], 'x'], tools: [cd], cwd: '/here' });
    await on.conversation.send('hi').result;
    expect(begun).toEqual(['/here', '/here']);
    expect(on.conversation.cwd).toBe('/here');
    expect((await on.agent.open('d', { cwd: '/there' })).cwd).toBe('/there');
  });
});

describe('invalid arguments of send', () => {
  it('an unknown kind or an invalid signal is a ConfigurationError, and nothing is logged or queued', async () => {
    const on = await bench({ replies: [deaf()] });
    const before = story(on.conversation.log());
    const sends = (options: object) => () => on.conversation.send('X', options);
    const odd = [{ kind: 'later' }, { kind: 'direct' }, { kind: null }, { signal: 5 }, { signal: null }];
    for (const options of odd) expect(sends(options)).toThrow(ConfigurationError);
    expect(story(on.conversation.log())).toEqual(before);
    const run = on.conversation.send('hi');
    await on.clock.advance(0);
    for (const options of odd) expect(sends(options)).toThrow(ConfigurationError);
    expect(on.conversation.queue).toEqual([]);
    await run.cancel();
  });
});
