/** The queue of a view compared with a plain list, over long random lives, and the reading of old views. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { branchQueue, dequeue, emptyQueue, enqueue, promote, queueView } from '../../src/projector/records.ts';
import { volume } from '../support/tier.ts';
import { parts } from './events.ts';

const id = fc.nat(40).map((number) => `m${number}`);
const act = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant('enqueue' as const), id, fc.boolean()) },
  { weight: 2, arbitrary: fc.tuple(fc.constant('dequeue' as const), id, fc.constant(false)) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('promote' as const), fc.constant(''), fc.constant(false)) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('branch' as const), fc.constant(''), fc.constant(false)) },
);

describe('the queue', () => {
  it('it equals a list: a repeated message moves to the end, and the first message leaves first', () => {
    fc.assert(
      fc.property(fc.array(act, { minLength: 100, maxLength: 300 }), (acts) => {
        let owner = 1;
        let queue = emptyQueue(owner);
        let list: { id: string; promotable: boolean }[] = [];
        const abandoned = { view: queueView(queue), ids: [] as string[] };
        for (const [name, messageId, promotable] of acts) {
          if (name === 'enqueue') {
            const message = { messageId, kind: 'followUp' as const, content: parts('') };
            expect(enqueue(queue, owner, message, promotable)).toBe(list.some((each) => each.id === messageId));
            list = [...list.filter((each) => each.id !== messageId), { id: messageId, promotable }];
          } else if (name === 'dequeue') {
            expect(dequeue(queue, owner, messageId)).toBe(list.some((each) => each.id === messageId));
            list = list.filter((each) => each.id !== messageId);
          } else if (name === 'promote') {
            const first = list.find((each) => each.promotable);
            expect(promote(queue, owner)?.messageId).toBe(first?.id);
            list = list.filter((each) => each !== first);
          } else {
            // A branch that continues beside it and is abandoned.
            const branch = branchQueue(queue);
            owner += 1;
            promote(branch, owner);
            enqueue(branch, owner, { messageId: 'm1', kind: 'steer', content: parts('') }, true);
            owner += 1;
            queue = { ...queue };
          }
          expect(queue.size).toBe(list.length);
        }
        expect(queueView(queue).map((each) => each.messageId)).toEqual(list.map((each) => each.id));
        expect(abandoned.view).toEqual(abandoned.ids);
      }),
      { numRuns: volume.events },
    );
  });
});
