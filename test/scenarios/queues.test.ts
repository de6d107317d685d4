/** Queued messages: steers, followUps and their promotion (docs/internals/model.md, Queue Semantics). */
import { describe, expect, it } from 'vitest';
import { type LogEntry, ModelError, type Run, RunchartError } from '../../src/index.ts';
import { type Bench, bench, entry, only, storeWith } from '../support/agentBench.ts';
import { gateTool } from '../support/scenarioTools.ts';
import { call, deaf, during, lines } from '../support/scriptedReplies.ts';
import { troubledStore } from '../support/troubledStore.ts';

const fatal = (): ModelError => new ModelError({ code: 'auth', message: 'no key' });
/** The last message of each model request. */
const shown = (on: Bench, index: number): string[] => lines(on.model.calls[index]?.messages ?? []);

describe('a message while the run is active', () => {
  it('S000-22: a plain message is refused with an error that names cancel, steer and followUp; the log is unchanged', async () => {
    const gate = gateTool();
    const on = await bench({ replies: [[call('c1', 'gate')], 'x'], tools: [gate.tool] });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    const before = on.conversation.log().length;
    let thrown: unknown;
    try {
      on.conversation.send('X');
    } catch (error) {
      thrown = error;
    }
    expect(RunchartError.isRunchartError(thrown) && thrown.code).toBe('agent_busy');
    expect(String(thrown)).toMatch(/agent is busy.*cancel.*steer.*followUp/);
    expect(on.conversation.log()).toHaveLength(before);
    gate.release('c1');
    await run.result;
  });

  it.each(['sequential', 'parallel'] as const)(
    'S000-12, S000-13: a steer during a round is delivered after all of its results (%s)',
    async (toolExecution) => {
      const gate = gateTool();
      const on = await bench({
        replies: [[call('c1', 'gate'), call('c2', 'gate')], 'A2'],
        tools: [gate.tool],
        policies: { toolExecution },
      });
      const run = on.conversation.send('hi');
      await gate.begun('c1');
      const receipt = on.conversation.steer('S');
      gate.release('c1');
      await gate.begun('c2');
      gate.release('c2');
      expect((await run.result).text).toBe('A2');
      expect(await receipt.delivered).toBe('delivered');
      expect(shown(on, 1).slice(-3)).toEqual(['c1 c1 is done', 'c2 c2 is done', 'user S']);
      const [cycle, ...others] = on.conversation.view().cycles;
      expect(others).toEqual([]);
      expect(cycle?.steps.map(({ type }) => type)).toEqual(['non-steer', 'ai-block', 'steer', 'ai-block']);
    },
  );

  it('S000-10: steers are delivered before followUps', async () => {
    const on: Bench = await bench({
      replies: [
        during(() => {
          on.conversation.steer('S');
          on.conversation.followUp('F');
        }, 'A1'),
        'A2',
        'A3',
      ],
    });
    const last = await followed(on, 'P', 'F');
    expect(last.text).toBe('A3');
    expect(lines(on.conversation.messages())).toEqual([
      'user P',
      'assistant A1',
      'user S',
      'assistant A2',
      'user F',
      'assistant A3',
    ]);
    expect(on.conversation.view().cycles.map(({ root }) => root.kind)).toEqual(['direct', 'followUp']);
  });

  it('the end of a run is shown before a slow store has the start of the next run', async () => {
    const store = troubledStore();
    const on: Bench = await bench({ store, replies: [during(() => on.conversation.followUp('F'), 'A'), 'B'] });
    const shownTypes: string[] = [];
    on.conversation.log$().subscribe(({ type }) => shownTypes.push(type));
    let land = (): void => undefined;
    const after = new Promise<void>((resolve) => {
      land = resolve;
    });
    const isNext = (entries: readonly LogEntry[]): boolean =>
      entries.some((each) => each.type === 'user-message' && each.kind === 'followUp');
    store.trouble((entries) => (isNext(entries) ? { after } : 'stored'));
    await on.conversation.send('P').result;
    await expect.poll(() => store.tried.some(isNext)).toBe(true);
    expect(shownTypes.filter((type) => type === 'user-message' || type === 'run-stop')).toEqual([
      'user-message',
      'run-stop',
    ]);
    land();
    await expect.poll(() => shownTypes.filter((type) => type === 'run-stop').length).toBe(2);
  });

  it('S000-09: followUps are first in, first out, one cycle each, with a stop between any two', async () => {
    const on: Bench = await bench({
      replies: [
        during(() => {
          on.conversation.followUp('b');
          on.conversation.followUp('c');
        }, 'A'),
        'B',
        'C',
      ],
    });
    await followed(on, 'a', 'c');
    const { cycles, queued } = on.conversation.view();
    expect(cycles.map(({ root }) => root.kind)).toEqual(['direct', 'followUp', 'followUp']);
    expect(cycles.every(({ stop }) => stop?.reason === 'completed')).toBe(true);
    expect(queued).toEqual([]);
    expect(only(on.conversation.log(), 'user-message', 'run-stop')).toEqual([
      'user-message direct a',
      'run-stop completed end_turn',
      'user-message followUp b',
      'run-stop completed end_turn',
      'user-message followUp c',
      'run-stop completed end_turn',
    ]);
  });

  /** Sends `first` and waits until the request whose message is `last` has its stop. */
  async function followed(on: Bench, first: string, last: string) {
    const run = on.conversation.send(first);
    await run.result;
    const root = await entry(on.conversation, 'user-message', ({ content }) =>
      content.some((part) => part.type === 'text' && part.text === last),
    );
    await entry(on.conversation, 'run-stop', ({ runId }) => runId === root.runId);
    const [text] = only(on.conversation.log(), 'agent-output').slice(-1);
    return { text: text?.split(' ')[1] };
  }

  it('a followUp has the run of its own cycle, and a steer has the active run', async () => {
    const gate = gateTool();
    const on = await bench({ replies: [[call('c1', 'gate')], 'first', 'second'], tools: [gate.tool] });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    expect(on.conversation.send('S', { kind: 'steer' })).toBe(run);
    const later = on.conversation.send('F', { kind: 'followUp' });
    gate.release('c1');
    expect((await run.result).text).toBe('first');
    const result = await later.result;
    expect(result).toMatchObject({ runId: later.id, text: 'second', turns: 1 });
  });

  it('a steer whose signal is already aborted is returned, and is no part of the active run', async () => {
    const gate = gateTool();
    const on = await bench({ replies: [[call('c1', 'gate')], 'first'], tools: [gate.tool] });
    const run = on.conversation.send('hi');
    await gate.begun('c1');
    const unwanted = on.conversation.send('S', { kind: 'steer', signal: AbortSignal.abort() });
    expect(unwanted).not.toBe(run);
    expect(await unwanted.result).toMatchObject({ termination: 'Cancelled' });
    gate.release('c1');
    expect((await run.result).text).toBe('first');
    expect(only(on.conversation.log(), 'user-message')).toEqual(['user-message direct hi']);
  });

  it('queueDrain one delivers one steer at a time, in order; all delivers all at once', async () => {
    for (const queueDrain of ['one', 'all'] as const) {
      const on: Bench = await bench({
        replies: [
          during(() => {
            on.conversation.steer('S1');
            on.conversation.steer('S2');
          }, 'A1'),
          'A2',
          'A3',
        ],
        policies: { queueDrain },
      });
      await on.conversation.send('P').result;
      const messages = lines(on.conversation.messages());
      if (queueDrain === 'one')
        expect(messages.slice(2)).toEqual(['user S1', 'assistant A2', 'user S2', 'assistant A3']);
      else expect(messages.slice(2)).toEqual(['user S1', 'user S2', 'assistant A2']);
    }
  });
});

describe('promotion', () => {
  it('a followUp is promoted after an error', async () => {
    const on: Bench = await bench({ replies: [during(() => on.conversation.followUp('F'), fatal()), 'A2'] });
    expect((await on.conversation.send('P').result).termination).toBe('Error');
    await entry(on.conversation, 'run-stop', ({ reason }) => reason === 'completed');
    expect(shown(on, 1)).toEqual(['user P', 'user F']);
    expect(on.conversation.status).toBe('idle');
  });

  it('a followUp is promoted after a cancel that has resolved', async () => {
    const on: Bench = await bench({ replies: [deaf(), 'A2'] });
    on.conversation.send('P');
    await on.clock.advance(0);
    const receipt = on.conversation.followUp('F');
    await on.conversation.cancel();
    expect(only(on.conversation.log(), 'run-stop')).toEqual(['run-stop interrupted cancelled']);
    expect(await receipt.delivered).toBe('delivered');
    await entry(on.conversation, 'run-stop', ({ reason }) => reason === 'completed');
  });

  it('S000-16: with promoteFollowUpOn completed, an error keeps the queue, and the end of the next run promotes it', async () => {
    const on: Bench = await bench({
      replies: [during(() => on.conversation.followUp('F1'), fatal()), 'A2', 'A3'],
      policies: { promoteFollowUpOn: ['completed'] },
    });
    await on.conversation.send('P').result;
    expect(on.conversation.queue.map(({ kind }) => kind)).toEqual(['followUp']);
    expect(on.conversation.view().queued).toHaveLength(1);
    expect(on.model.calls).toHaveLength(1);
    const stops = entry(on.conversation, 'user-message', ({ kind }) => kind === 'followUp');
    await on.conversation.send('P2').result;
    const promoted = await stops;
    await entry(on.conversation, 'run-stop', ({ runId }) => runId === promoted.runId);
    expect(lines(on.conversation.messages()).slice(1)).toEqual(['user P2', 'assistant A2', 'user F1', 'assistant A3']);
    expect(on.conversation.queue).toEqual([]);
  });

  it('S000-18: with promoteFollowUpOn completed, a cancel keeps steer and followUp queued and listed', async () => {
    const on = await bench({ replies: [deaf(), 'A2'], policies: { promoteFollowUpOn: ['completed'] } });
    on.conversation.send('P');
    await on.clock.advance(0);
    on.conversation.followUp('F');
    on.conversation.steer('S');
    await on.conversation.cancel();
    expect(on.conversation.queue.map(({ kind }) => kind)).toEqual(['followUp', 'steer']);
    expect(on.model.calls).toHaveLength(1);
    expect(on.conversation.status).toBe('idle');
  });

  it('a steer that a stop left queued is delivered before the first model call of the next run', async () => {
    const on: Bench = await bench({ replies: [during(() => on.conversation.steer('S'), fatal()), 'A2'] });
    await on.conversation.send('P').result;
    expect(on.conversation.queue.map(({ kind }) => kind)).toEqual(['steer']);
    await on.conversation.send('P2').result;
    expect(shown(on, 1)).toEqual(['user P', 'user P2', 'user S']);
    expect(on.conversation.queue).toEqual([]);
  });

  it("a cancel of a promotion that has not started ends at once: a conversation's cancel keeps the message, a run's cancel returns it", async () => {
    const { conversation } = await bench({ replies: ['one', 'two'], policies: { promoteFollowUpOn: [] } });
    let act = (): Promise<unknown> => Promise.resolve();
    let over: Promise<unknown> | undefined;
    // A promotion waits until the stop was reported.
    conversation.log$().subscribe((each) => {
      if (each.type === 'checkpoint' && each.boundary === 'RunFinished') over = act();
    });
    const first = conversation.send('hi');
    conversation.followUp('later');
    act = () => {
      conversation.resume();
      return conversation.cancel();
    };
    await first.result;
    await over;
    expect([conversation.status, conversation.queue.length]).toEqual(['idle', 1]);
    let run: Run | undefined;
    act = () => {
      run = conversation.resume();
      return run.cancel();
    };
    await conversation.send('again').result;
    await over;
    expect([conversation.status, conversation.queue.length]).toEqual(['idle', 0]);
    expect(await run?.result).toMatchObject({ termination: 'Cancelled' });
    expect(only(conversation.log(), 'run-started')).toHaveLength(2);
  });

  it('a followUp that was queued when the process ended waits; resume() promotes it', async () => {
    const policies = { promoteFollowUpOn: ['completed'] as const };
    const before = await bench({ replies: [deaf()], policies });
    before.conversation.send('P');
    await before.clock.advance(0);
    before.conversation.followUp('F');
    await before.conversation.cancel();
    // A dying process returns no message: another one finds the log as it was.
    const store = await storeWith(before.conversation.log());
    const on = await bench({ replies: ['A', 'B'], store, policies });
    expect(on.conversation.queue).toHaveLength(1);
    expect(on.model.calls).toHaveLength(0);
    const first = await on.conversation.resume().result;
    expect(first.termination).toBe('NaturalEnd');
    await entry(on.conversation, 'user-message', ({ kind }) => kind === 'followUp');
  });
});
