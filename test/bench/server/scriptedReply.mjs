/**
 * The model of the server bench: a turn of 210 deltas and one tool call, each delta in a turn of the event loop of its own.
 * Both servers read the same generator.
 */
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';

export const DELTAS = 210;
export const TOOL = 'lookup';
export const lookup = ({ key }) => `the value of ${key}`;

let called = 0;
let finished = 0;
/** The number of final replies of this process that are complete, up to their last part. */
export const finishedReplies = () => finished;

async function* words(count) {
  for (let index = 0; index < count; index++) {
    await nextTurn();
    yield { type: 'text-delta', text: `word ${index} of it, ` };
  }
}

/**
 * `prompt`: the last message of the user. `endless` streams until the signal is aborted. `tools N` calls N tools in one
 * round. `flood N` streams N deltas in one turn of the event loop.
 */
export async function* scriptedReply({ prompt, isAfterTools, signal }) {
  const [kind, number] = prompt.split(' ');
  if (kind === 'endless') {
    for (;;) {
      await wait(20, undefined, { signal });
      yield { type: 'text-delta', text: 'on and on, ' };
    }
  }
  const calls = kind === 'tools' ? Number(number) : 1;
  if (!isAfterTools) {
    if (kind !== 'tools') yield* words(DELTAS / 2);
    for (let index = 0; index < calls; index++) {
      called += 1;
      yield { type: 'tool-call', callId: `call_${called}`, name: TOOL, args: JSON.stringify({ key: `k${index}` }) };
    }
    yield { type: 'finish', reason: 'tool-calls' };
    return;
  }
  if (kind === 'flood')
    for (let index = 0; index < Number(number); index++) yield { type: 'text-delta', text: 'word ' };
  else yield* words(kind === 'tools' ? 1 : DELTAS / 2);
  finished += 1;
  yield { type: 'finish', reason: 'stop' };
}
