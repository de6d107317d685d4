/**
 * Random replies of a model in wire form: text, complete and unusual calls, failures, broken streams. Invariant: real
 * servers have sent all of it. `act` is called between the pieces, so that a walker can act at that moment.
 */
import type { Chance } from '../support/seededChance.ts';
import type { Answer, Piece } from './strictServer.ts';

const stream = { 'content-type': 'text/event-stream' };
const event = (fields: object): string =>
  `data: ${JSON.stringify({ id: 'r', object: 'chat.completion.chunk', ...fields })}\n\n`;
const delta = (fields: object, finish: string | null = null): string =>
  event({ choices: [{ index: 0, delta: fields, finish_reason: finish }] });
const usage = event({ choices: [], usage: { prompt_tokens: 90, completion_tokens: 10, total_tokens: 100 } });

interface Call {
  id: string;
  name: string;
  args: string;
}

const NAMES = ['echo', 'echo', 'fail', 'ask', 'ask', 'hold', 'slow', 'missing', 'bad name!'] as const;

function randomCall(chance: Chance): Call {
  const name = chance.one(NAMES);
  const args = chance.one([
    '{"m":"a"}',
    '{"m":"a"}',
    '{"m":"b"}',
    '',
    '{}',
    '{"m":',
    '[1]',
    'null',
    '{"m":7}',
    '{"__proto__":{"m":1}}',
  ]);
  // Some servers restart the count in each reply; some send no id, or an empty one.
  const id = chance.one([`call_${chance.below(1e9)}`, `call_${chance.below(1e9)}`, `call_${chance.below(3)}`, '']);
  return { id, name, args };
}

function callPieces(call: Call, index: number, chance: Chance): string[] {
  const { id, name, args } = call;
  const cut = chance.below(args.length + 1);
  const first = {
    index,
    ...(id !== '' && { id }),
    type: 'function',
    function: { name, arguments: args.slice(0, cut) },
  };
  const rest = args.slice(cut);
  return [
    delta({ tool_calls: [first] }),
    ...(rest === '' ? [] : [delta({ tool_calls: [{ index, function: { arguments: rest } }] })]),
  ];
}

/** A failure before any text. */
function refused(chance: Chance): Answer {
  const status = chance.one([429, 429, 500, 503, 408, 401]);
  const body = JSON.stringify({ error: { message: 'not now', type: 'server_error' } });
  const wait = chance.odds(0.5) ? { 'retry-after': '0' } : {};
  return { status, headers: { 'content-type': 'application/json', ...wait }, pieces: [body], end: 'whole' };
}

/** A complete reply, or an interrupted one. `calm`: text only. */
export function randomAnswer(chance: Chance, act: () => unknown, calm: boolean): Answer {
  if (calm) return whole([delta({ content: 'the end' })], 'stop');
  if (chance.odds(0.1)) return refused(chance);
  const words = chance.odds(0.6) ? ['some ', 'words'] : [];
  const calls = chance.odds(0.55) ? Array.from({ length: 1 + chance.below(4) }, () => randomCall(chance)) : [];
  const pieces: Piece[] = [
    ...(chance.odds(0.2) ? [delta({ reasoning_content: 'hm' })] : []),
    ...words.map((content) => delta({ content })),
    ...calls.flatMap((call, index) => callPieces(call, index, chance)),
  ];
  if (chance.odds(0.3)) pieces.splice(chance.below(pieces.length + 1), 0, act);
  const ends = chance.below(20);
  if (ends === 0) return { status: 200, headers: stream, pieces: pieces, end: 'cut' };
  if (ends === 1) return { status: 200, headers: stream, pieces: pieces, end: 'whole' };
  if (ends === 2)
    return {
      status: 200,
      headers: stream,
      pieces: [...pieces, 'data: {"error":{"message":"overloaded"}}\n\n'],
      end: 'whole',
    };
  if (ends === 3) return whole(pieces, 'length');
  if (ends === 4) return whole(pieces, 'content_filter');
  return whole(pieces, calls.length > 0 && !chance.odds(0.1) ? 'tool_calls' : 'stop');
}

const whole = (pieces: readonly Piece[], finish: string): Answer => ({
  status: 200,
  headers: stream,
  pieces: [...pieces, delta({}, finish), usage, 'data: [DONE]\n\n'],
  end: 'whole',
});
