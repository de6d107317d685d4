/**
 * The replies of the model in each scenario, as server-sent events, and a `fetch` that returns them. Invariant: both
 * contenders receive the same bytes in the same network chunks.
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

const rounds = (count) => Array.from({ length: count }, (_, round) => packets(calls(1, round), 1));
const answer = packets(text(20), 1);

/** Earlier messages: questions and answers in turn. */
const earlier = (count) =>
  Array.from({ length: count }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: `message ${index}: ${'some words of a conversation '.repeat(3)}`,
  }));

/**
 * By scenario: the replies of one run, the number of runs in one measurement of a process and in one slice, and the
 * initial content. `earlier` is passed when the conversation is opened. Each run opens it, unless it `isOpen` already
 * and a run is one more turn. `state` is read before each run and written after it. `log` counts the stored bytes.
 */
export const scenarios = {
  A: { about: 'one turn of 20 deltas', replies: [answer], runs: 2000, warm: 2000, slice: 80 },
  B: { about: '10 rounds of one tool', replies: [...rounds(10), answer], runs: 300, warm: 200, slice: 12 },
  C: { about: 'one round of 32 tools', replies: [packets(calls(32, 0), 1), answer], runs: 300, warm: 200, slice: 16 },
  D: { about: '20,000 deltas', replies: [packets(text(20_000), 16)], runs: 6, warm: 3, slice: 1 },
  E0: { about: 'a second turn', replies: [answer], earlier: earlier(2), runs: 1000, warm: 1000, slice: 40 },
  E2000: {
    about: 'a turn after 2,000 messages',
    replies: [answer],
    earlier: earlier(2000),
    isOpen: true,
    runs: 240,
    warm: 160,
    slice: 20,
  },
  O2000: {
    about: 'opened with 2,000 and a turn',
    replies: [answer],
    earlier: earlier(2000),
    runs: 60,
    warm: 40,
    slice: 6,
  },
  F10: {
    about: 'state of 10 messages, read and written',
    replies: [answer],
    state: earlier(10),
    runs: 600,
    warm: 400,
    slice: 24,
  },
  F1000: {
    about: 'state of 1,000, read and written',
    replies: [answer],
    state: earlier(1000),
    runs: 60,
    warm: 40,
    slice: 6,
  },
  G: { about: '1,000 runs at once', replies: [answer], runs: 1000, warm: 200, slice: 1000, together: true },
  H200: { about: '200 rounds, stored', replies: [...rounds(200), answer], log: true, runs: 6, warm: 3, slice: 1 },
};

/**
 * A fetch that answers the nth request of a run with the nth reply. It counts the assistant messages in the request
 * without the initial ones.
 */
export function scriptedFetch({ replies, earlier = [], state = [] }) {
  const before = [...earlier, ...state].filter(({ role }) => role === 'assistant').length;
  return async (_url, init) => {
    const sent = init.body;
    let turn = -before;
    for (let at = sent.indexOf('"role":"assistant"'); at >= 0; at = sent.indexOf('"role":"assistant"', at + 1))
      turn += 1;
    const reply = replies[turn % replies.length];
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
