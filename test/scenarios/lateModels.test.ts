/**
 * A model that ignores its signal is reported when it emits something after the end of its call. The run does not wait
 * for it.
 */
import { expect, it } from 'vitest';
import type { LogEntry, ModelPart } from '../../src/index.ts';
import { bench } from '../support/agentBench.ts';
import { deaf, finish, t } from '../support/scriptedReplies.ts';
import { flush } from '../support/virtualClock.ts';

/**
 * Emits `a`, then waits until released and ignores its signal. `heeds`: it ends if the signal was aborted meanwhile.
 */
function held({ heeds = false } = {}) {
  let letGo = (): void => undefined;
  const wait = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  async function* reply(_: unknown, { signal }: { signal: AbortSignal }): AsyncGenerator<ModelPart> {
    yield t('a');
    await wait;
    if (heeds) signal.throwIfAborted();
    yield t('b');
    yield t('c');
    yield finish('stop');
  }
  return { reply, letGo: () => letGo() };
}

const diagnosed = (log: readonly LogEntry[]): unknown[] =>
  log.flatMap((entry) => (entry.type === 'diagnostic' ? [[entry.code, entry.detail]] : []));
const NAMED = [['late_part', { model: 'scripted' }]];

it.each(['cancel', 'time-out'] as const)('a model that ignores the %s of its call is reported once', async (way) => {
  const { reply, letGo } = held();
  const policies = { modelRetry: { attempts: 1 }, modelTimeout: { idleMs: 500 } };
  const { conversation, clock } = await bench({ replies: [reply, 'next'], policies });
  const run = conversation.send('hi');
  await flush();
  if (way === 'cancel') await clock.until(run.cancel());
  else await clock.until(run.result);
  expect(diagnosed(conversation.log())).toEqual([]);
  letGo();
  await flush();
  expect(diagnosed(conversation.log())).toEqual(NAMED);
  expect((await conversation.send('again').result).text).toBe('next');
  expect(diagnosed(conversation.log())).toEqual(NAMED);
  await conversation.close();
});

it('a model that obeys its signal, even late, is not reported, nor is one that never emits anything more', async () => {
  const { reply, letGo } = held({ heeds: true });
  const { conversation, clock } = await bench({ replies: [reply, deaf(t('a')), 'next'] });
  for (const text of ['one', 'two']) {
    const run = conversation.send(text);
    await flush();
    await clock.until(run.cancel());
    letGo();
    await flush();
  }
  expect(diagnosed(conversation.log())).toEqual([]);
  await conversation.close();
});
