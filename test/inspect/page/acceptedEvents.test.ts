/** The events that the state card lists for an app, and those that it can send. */
import { afterEach, expect, it, vi } from 'vitest';
import { assign, createMachine } from 'xstate';
import { chartOf } from '../../../src/inspect/chart.ts';
import { pageBench } from './pageBench.ts';

afterEach(() => vi.unstubAllGlobals());

const machine = createMachine({
  id: 'lamp',
  initial: 'off',
  on: { COUNT: { actions: assign({}) }, 'switch all': '.on' },
  states: { off: {}, on: {} },
});

async function openApp() {
  vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => undefined });
  const page = await pageBench();
  const card = await import('../../../inspector/view/StateCard.tsx');
  const { charts } = await import('../../../inspector/state/chartLayouts.ts');
  page.server.greet();
  page.server.say(
    { n: 0, at: 0, type: 'chart', chart: 'lamp#0', drawn: chartOf(machine) },
    { n: 1, at: 0, type: 'conversation', conversation: 'app', of: 'xstate', takesEvents: true },
    { n: 2, at: 0, type: 'actor', actor: 'a0', conversation: 'app', name: 'x:0', chart: 'lamp#0' },
  );
  page.openConversation('app');
  return { ...page, ...card, charts };
}

it('are those of its parents too, whether they lead to another state or not', async () => {
  const { acceptedBy } = await openApp();
  expect(acceptedBy('lamp#0', 'lamp.off').map(({ type }) => type)).toEqual(['COUNT', 'switch all']);
  // Almost each state of a run accepts these.
  expect(acceptedBy('RUN', 'RUN.active.LlmCall.attempting').every(({ target }) => target !== '')).toBe(true);
});

it('may have a space in their names', async () => {
  const { maySend } = await openApp();
  const sendable = ['COUNT', 'switch all', 'mouse.*', 'xstate.after.100.lamp'].filter((type) =>
    maySend(type, 'lamp#0', 'a0'),
  );
  expect(sendable).toEqual(['COUNT', 'switch all']);
});
