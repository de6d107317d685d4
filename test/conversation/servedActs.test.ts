/** Acts of other processes on a conversation that this one holds, with a store in which an act or its answer fails. */
import { Subject } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serveActs } from '../../src/conversation/served/remoteActs.ts';
import type { Act, ActAnswer, EffectOfAct, LogHandle } from '../../src/stores/logStore.ts';
import { bench, entry } from '../support/agentBench.ts';
import { gateTool } from '../support/scenarioTools.ts';
import type { Reply } from '../support/scriptedReplies.ts';

/** A conversation that serves acts. `fails`: the acts whose next answer cannot be stored. */
async function served({ replies = [], fails = [] }: { replies?: readonly Reply[]; fails?: string[] } = {}) {
  const gate = gateTool();
  const { conversation } = await bench({ replies, tools: [gate.tool] });
  onTestFinished(() => conversation.close());
  const acts$ = new Subject<Act>();
  const answers: ActAnswer[] = [];
  const effects = new Map<string, EffectOfAct>();
  const waiting: (() => void)[] = [];
  const handle: LogHandle = {
    async *read() {},
    append: async () => {},
    close: async () => {},
    acts$,
    expectEffect: (actId, effect) => void effects.set(actId, effect),
    async answerAct(actId, answer) {
      const at = fails.indexOf(actId);
      if (at >= 0) fails.splice(at, 1);
      if (at >= 0) throw new Error('connection lost');
      answers.push(answer);
      for (const resolve of waiting.splice(0)) resolve();
    },
  };
  serveActs(conversation, handle);
  /** Resolves with the answer to the act. */
  const ask = async (act: Act): Promise<ActAnswer | undefined> => {
    const answered = new Promise<void>((resolve) => void waiting.push(resolve));
    acts$.next(act);
    await answered;
    return answers.at(-1);
  };
  return { conversation, gate, acts$, answers, effects, ask };
}

describe('an act that was carried out', () => {
  it('is not reported as failed if its answer cannot be stored', async () => {
    const { conversation, ask } = await served({ fails: ['a'] });
    expect(await ask({ actId: 'a', type: 'rename', title: 'New' })).toEqual({
      error: { code: 'store', message: 'the act was carried out, but its answer could not be stored' },
    });
    expect(conversation.log().at(-1)).toMatchObject({ title: 'New' });
  });

  it('has no answer if none can be stored, and the next act has one', async () => {
    const { conversation, acts$, ask } = await served({ fails: ['a', 'a'] });
    acts$.next({ actId: 'a', type: 'rename', title: 'New' });
    await entry(conversation, 'renamed');
    expect(await ask({ actId: 'b', type: 'overview' })).toMatchObject({ value: { entries: 2 } });
  });
});
