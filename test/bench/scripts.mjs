/**
 * What the model says in each scenario, as server-sent events, and a `fetch` that answers with it. Rule: both
 * contenders get the same bytes in the same network chunks.
 */
const encoder = new TextEncoder();
const chunk = (delta, finish = null) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'bench',
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const usage = {
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'bench',
  choices: [],
  usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
};
const event = (body) => `data: ${JSON.stringify(body)}\n\n`;

const text = (count, word = 'word ') => [
  event(chunk({ role: 'assistant', content: '' })),
  ...Array.from({ length: count }, () => event(chunk({ content: word }))),
  event(chunk({}, 'stop')),
  event(usage),
  'data: [DONE]\n\n',
];
const calls = (count, round) => [
  event(chunk({ role: 'assistant', content: null })),
  ...Array.from({ length: count }, (_, index) => [
    event(
      chunk({
        tool_calls: [
          { index, id: `call_${round}_${index}`, type: 'function', function: { name: 'echo', arguments: '' } },
        ],
      }),
    ),
    event(chunk({ tool_calls: [{ index, function: { arguments: `{"text":"round ${round}` } }] })),
    event(chunk({ tool_calls: [{ index, function: { arguments: ` call ${index}"}` } }] })),
  ]).flat(),
  event(chunk({}, 'tool_calls')),
  event(usage),
  'data: [DONE]\n\n',
];

/** Groups events into network chunks. */
function packets(events, group) {
  const list = [];
  for (let i = 0; i < events.length; i += group) list.push(encoder.encode(events.slice(i, i + group).join('')));
  return list;
}

/** By scenario: the replies of one run, and how many runs are one measurement. */
export const scenarios = {
  A: { about: 'one turn of 20 deltas', replies: [packets(text(20), 1)], runs: 2000, warm: 2000 },
  B: {
    about: '10 rounds of one tool',
    replies: [...Array.from({ length: 10 }, (_, round) => packets(calls(1, round), 1)), packets(text(20), 1)],
    runs: 300,
    warm: 200,
  },
  C: {
    about: 'one round of 32 tools',
    replies: [packets(calls(32, 0), 1), packets(text(20), 1)],
    runs: 300,
    warm: 200,
  },
  D: { about: '20,000 deltas', replies: [packets(text(20_000), 16)], runs: 6, warm: 3 },
  G: { about: '1,000 runs at once', replies: [packets(text(20), 1)], runs: 1000, warm: 200, together: true },
  R: {
    about: '200 rounds of one tool',
    replies: [...Array.from({ length: 200 }, (_, round) => packets(calls(1, round), 1)), packets(text(20), 1)],
    runs: 3,
    warm: 1,
  },
};

/** A fetch that answers the nth request of a run with the nth reply; it counts by the assistant messages it is sent. */
export function scriptedFetch(replies) {
  return async (_url, init) => {
    const sent = init.body;
    let turn = 0;
    for (let at = sent.indexOf('"role":"assistant"'); at >= 0; at = sent.indexOf('"role":"assistant"', at + 1))
      turn += 1;
    const reply = replies[turn];
    let next = 0;
    const body = new ReadableStream({
      pull(controller) {
        if (next < reply.length) controller.enqueue(reply[next++]);
        else controller.close();
      },
    });
    return new Response(body, { status: 200, headers: { 'content-type': 'text/event-stream' } });
  };
}

export const toolSpec = {
  type: 'object',
  properties: { text: { type: 'string' } },
  required: ['text'],
  additionalProperties: false,
};
