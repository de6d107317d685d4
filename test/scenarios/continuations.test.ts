/** A `continuation` is in the log only if the model is called again (docs/internals/model.md, Model Messages). */
import { describe, expect, it } from 'vitest';
import { bench, only } from '../support/agentBench.ts';
import { deaf, finish, lines, t } from '../support/scriptedReplies.ts';
import { type Fate, troubledStore } from '../support/troubledStore.ts';
import { VirtualClock } from '../support/virtualClock.ts';

const nothing = [finish('stop')];
const paused = (text: string) => [t(text), finish('pause')];

describe('a continuation is written only where another call follows', () => {
  it('H-034: an empty reply that ends the run is followed by none, and its notice does not announce another call', async () => {
    const { conversation, model } = await bench({ replies: [nothing, nothing, nothing, 'here I am'] });
    expect((await conversation.send('hi').result).cause).toBe('empty_replies');
    expect(only(conversation.log(), 'notice', 'continuation', 'run-stop')).toEqual([
      'notice empty_reply',
      'continuation empty_reply',
      'notice empty_reply',
      'continuation empty_reply',
      'run-stop error empty_replies',
    ]);
    await conversation.send('are you there?').result;
    expect(lines(model.calls[3]?.messages ?? []).at(-1)).toBe('user are you there?');
    expect(lines(model.calls[3]?.messages ?? [])).toHaveLength(4);
  });

  it('a pause at the limit of turns is followed by none; a resume asks the model to continue', async () => {
    const policies = { limits: { turns: 2 } };
    const { conversation, model } = await bench({ replies: [paused('one'), paused('two')], policies });
    expect((await conversation.send('hi').result).cause).toBe('max_turns');
    expect(only(conversation.log(), 'continuation')).toEqual(['continuation pause']);
    expect(model.calls).toHaveLength(2);
    await conversation.resume().result;
    expect(only(conversation.log(), 'continuation')).toEqual(['continuation pause', 'continuation resume']);
  });
});

describe('a resume after a reply that is still being stored', () => {
  const half = deaf(t('half a '), t('word'));
  const policies = { partialReply: 'keep' } as const;

  it.each<[string, Fate]>([
    ['is slow', { afterMs: 400 }],
    ['rejects it at first', { afterMs: 400, fails: true }],
  ])('the model is asked to continue if the store %s', async (_, fate) => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const { conversation, model } = await bench({ clock, store, policies, replies: [half, 'and the rest'] });
    const run = conversation.send('hi');
    await clock.advance(5);
    let stopped = false;
    store.trouble((entries) => {
      if (stopped || !entries.some(({ type }) => type === 'run-stop')) return 'stored';
      stopped = true;
      return fate;
    });
    await clock.until(run.cancel());
    const resumed = conversation.resume();
    await clock.until(resumed.result, 5000);
    expect(lines(model.calls[1]?.messages ?? [])).toEqual([
      'user hi',
      'assistant half a word',
      'user Go on where you stopped.',
    ]);
    expect(only(conversation.log(), 'continuation')).toEqual(['continuation resume']);
  });

  it('the model is not asked to continue if the reply is lost', async () => {
    const clock = new VirtualClock();
    const store = troubledStore({ clock });
    const { conversation, model } = await bench({ clock, store, policies, replies: [half, 'anew'] });
    const run = conversation.send('hi');
    await clock.advance(5);
    store.trouble((entries) =>
      entries.some(({ type }) => type === 'run-stop') ? { afterMs: 10, fails: true } : 'stored',
    );
    await clock.until(run.cancel());
    store.trouble(() => 'stored');
    await clock.until(conversation.resume().result, 5000);
    expect(lines(model.calls[1]?.messages ?? [])).toEqual(['user hi']);
  });
});
