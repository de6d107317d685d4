/** A defect in a chart: the run ends with an error, and the conversation takes no more acts. */
import { expect, it } from 'vitest';
import { createAgent } from '../../src/index.ts';
import { compiled } from '../../src/runtime/interpreter/chartActor.ts';
import type { Interpreter } from '../../src/runtime/interpreter/interpreter.ts';
import { during, scripted } from '../support/scriptedReplies.ts';

/** The chart of a conversation that breaks at its second message. */
const breaking: Interpreter = (options) => {
  const root = compiled(options);
  const send = root.send.bind(root);
  let messages = 0;
  root.send = (event) => {
    if (messages > 1) return;
    if (event.type === 'message.sent') messages += 1;
    if (messages > 1) options.onError(new Error('out of its states'));
    else send(event);
  };
  return root;
};

it('a chart that breaks ends its run with the error, returns messages, and refuses later acts with the same error', async () => {
  const model = scripted([during(() => new Promise(() => undefined), 'one')]);
  const conversation = await createAgent({ model, ports: { interpreter: breaking } }).open('c');
  const run = conversation.send('hi');
  await expect.poll(() => model.calls.length).toBe(1);
  const { delivered } = conversation.steer('other');
  expect(await run.result).toMatchObject({
    termination: 'Error',
    cause: 'internal',
    subtype: 'error_during_execution',
    error: { code: 'internal', message: expect.stringContaining('out of its states') },
  });
  expect(await delivered).toBe('returned');
  expect(await conversation.followUp('later').delivered).toBe('returned');
  // `rejects.toThrow` also accepts a rejection with undefined.
  const later = await conversation.settle('c1', { didNotRun: true }).catch((error: unknown) => error);
  expect(later).toMatchObject({ message: 'out of its states' });
});
