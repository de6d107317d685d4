/** Plugins at the end of a failed run, of a request that is never sent, and of a conversation. */
import { describe, expect, it } from 'vitest';
import { ModelError, type Plugin } from '../../src/index.ts';
import { CALL_CHECKS } from '../../src/plugins/callChecks.ts';
import { bench, only } from '../support/agentBench.ts';
import { logOf } from '../support/subAgentBench.ts';

const hang = () => new Promise<never>(() => undefined);

describe('a plugin after the model has failed for good', () => {
  const failed = async (plugin: Plugin) => {
    const { conversation } = await bench({
      replies: [new ModelError({ code: 'rate-limit', status: 429, message: 'slow down' })],
      plugins: [plugin],
      policies: { modelRetry: { attempts: 1 } },
    });
    const { termination, error } = await conversation.send('hi').result;
    return { end: [termination, error?.code], diagnostics: only(conversation.log(), 'diagnostic') };
  };
  const MODEL = ['Error', 'rate-limit'];

  it.each(['afterInference', 'stepEnd', 'runEnd'])(
    'does not replace that failure by its own in %s, even if it is required',
    async (phase) => {
      const broken = () => {
        throw new Error('broken');
      };
      expect(await failed({ name: 'own', required: true, [phase]: broken })).toEqual({
        ...{ end: MODEL, diagnostics: ['diagnostic plugin_error'] },
      });
    },
  );

  it.each(['afterInference', 'stepEnd'])('does not replace it by an answer that %s cannot use', async (phase) => {
    for (const answer of [{ terminate: 7 }, { terminate: 'enough' }, { context: 7 }, { continue: 'more' }])
      expect((await failed({ name: 'own', required: true, [phase]: () => answer as never })).end).toEqual(MODEL);
  });
});

it('the change of a plugin to a request that is never sent is not in the next request', async () => {
  let requests = 0;
  const plugins: Plugin[] = [
    { name: 'changes', beforeInference: () => (requests++ === 0 ? { request: { temperature: 0.5 } } : undefined) },
    { name: 'ends', beforeInference: () => (requests === 1 ? { terminate: 'not now' } : undefined) },
  ];
  const { conversation, model } = await bench({ replies: ['a'], plugins });
  expect((await conversation.send('one').result).termination).not.toBe('NaturalEnd');
  expect((await conversation.send('two').result).text).toBe('a');
  expect(model.calls.map(({ temperature }) => temperature)).toEqual([undefined]);
});

it('a plugin that hangs at the close of its conversation has five seconds, and the others are closed after it', async () => {
  const closed: string[] = [];
  const checks = (name: string, act: () => Promise<void>): Plugin =>
    ({ name, [CALL_CHECKS]: { closed: act } }) as Plugin;
  const on = await bench({
    ...{ replies: ['a'], plugins: [checks('hangs', hang), checks('other', async () => void closed.push('other'))] },
  });
  await on.conversation.send('hi').result;
  expect(await on.clock.until(on.agent.close(), 60_000)).toBe(5_000);
  expect(closed).toEqual(['other']);
  expect(only(await logOf(on.store, 'c'), 'diagnostic')).toEqual(['diagnostic plugin_error']);
});
