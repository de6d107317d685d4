/** Requests of chat pages, their paths and the ends of their streams, and the messages of line transports: each by a table of all its forms. */
import { from, lastValueFrom, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { LogEntry } from '../../src/index.ts';
import { agUiContentOf, readAgUiPart, readUiPart, uiPartOf } from '../../src/transports/chat/chatParts.ts';
import { chatPath } from '../../src/transports/chat/chatPaths.ts';
import { agUiDecision, readAgUi, readUiMessages, uiDecision } from '../../src/transports/chat/chatRequests.ts';
import { toAgUi, toUiMessages } from '../../src/transports/index.ts';
import { readIncoming, requestIdOf } from '../../src/transports/wireMessages.ts';

const malformed = expect.objectContaining({ code: 'malformed' });

describe('an answer of a page', () => {
  it.each<[object, object]>([
    [{ status: 'cancelled' }, { action: 'deny' }],
    [{ status: 'cancelled', payload: true }, { action: 'deny' }],
    [{ status: 'resolved', payload: true }, { action: 'approve' }],
    [{ status: 'resolved', payload: false }, { action: 'deny' }],
    [{ status: 'resolved', payload: { approved: true } }, { action: 'approve' }],
    [{ status: 'resolved', payload: { approved: true, reason: 'ok' } }, { action: 'approve' }],
    [
      { status: 'resolved', payload: { approved: false, reason: 'no' } },
      { action: 'deny', reason: 'no' },
    ],
    [{ status: 'resolved', payload: { approved: false, reason: 7 } }, { action: 'deny' }],
    [
      { status: 'resolved', payload: { approved: true, args: 1 } },
      { action: 'approve', args: 1 },
    ],
    [
      { status: 'resolved', payload: { action: 'edit', args: {} } },
      { action: 'edit', args: {} },
    ],
    [
      { status: 'resolved', payload: { action: 7 } },
      { action: 'answer', payload: { action: 7 } },
    ],
    [
      { status: 'resolved', payload: { name: 'x' } },
      { action: 'answer', payload: { name: 'x' } },
    ],
    [
      { status: 'resolved', payload: 'yes' },
      { action: 'answer', payload: 'yes' },
    ],
    [
      { status: 'resolved', payload: 0 },
      { action: 'answer', payload: 0 },
    ],
    [
      { status: 'resolved', payload: null },
      { action: 'answer', payload: null },
    ],
    [
      { status: 'resolved', payload: [true] },
      { action: 'answer', payload: [true] },
    ],
  ])('of AG-UI: %j is the decision %j', (answer, decision) => {
    expect(agUiDecision(answer)).toEqual(decision);
  });

  it.each([
    {},
    { status: 'resolved' },
    { status: 'done', payload: true },
    { payload: true },
    { status: 'resolved', payload: { approved: 'yes' } },
    { status: 'resolved', payload: { approved: 1 } },
    { status: 'resolved', payload: { approved: null, action: 'approve' } },
  ])('of AG-UI: %j never approves', (answer) => {
    expect(() => agUiDecision(answer)).toThrow(malformed);
  });

  it.each<[object, object]>([
    [{ id: '1/c', approved: true }, { action: 'approve' }],
    [{ approved: true, reason: 'ok', signature: 's' }, { action: 'approve' }],
    [{ approved: false }, { action: 'deny' }],
    [
      { approved: false, reason: 'no' },
      { action: 'deny', reason: 'no' },
    ],
    [
      { approved: true, args: {}, payload: 1 },
      { action: 'approve', args: {}, payload: 1 },
    ],
  ])('of the AI SDK: %j is the decision %j', (answer, decision) => {
    const defined = Object.fromEntries(Object.entries(uiDecision(answer)).filter(([, value]) => value !== undefined));
    expect(defined).toEqual(decision);
  });

  it.each([{}, { approved: 'true' }, { approved: 1 }, { approved: null }])(
    'of the AI SDK: %j never approves',
    (answer) => {
      expect(() => uiDecision(answer)).toThrow(malformed);
    },
  );
});

describe('a request of AG-UI', () => {
  const user = { role: 'user', id: 'u', content: 'hi' };
  const hi = { id: 'u', content: [{ type: 'text', text: 'hi' }] };

  it.each<[string, object, object]>([
    ['a message', { messages: [user] }, { message: hi }],
    [
      'the last of several messages',
      { messages: [{ ...user, id: 'a' }, { role: 'assistant', content: '' }, user] },
      { message: hi },
    ],
    ['a message without an id', { messages: [{ ...user, id: undefined }] }, { message: { ...hi, id: undefined } }],
    [
      'answers in place of messages',
      { resume: [{ interruptId: '1/c', status: 'cancelled' }] },
      { answers: new Map([['1/c', { interruptId: '1/c', status: 'cancelled' }]]) },
    ],
    [
      'answers before messages',
      { messages: [user], resume: [{ interruptId: '1/c' }] },
      { answers: new Map([['1/c', { interruptId: '1/c' }]]) },
    ],
    [
      'a result',
      { messages: [user, { role: 'tool', toolCallId: 'c', content: 'x' }] },
      { results: new Map([['c', { content: 'x' }]]) },
    ],
    [
      'a failed result',
      { messages: [{ role: 'tool', toolCallId: 'c', content: 'x', error: 'e' }] },
      { results: new Map([['c', { content: 'x', error: 'e' }]]) },
    ],
    [
      'a result that is no text',
      { messages: [{ role: 'tool', toolCallId: 'c', content: { a: 1 } }] },
      { results: new Map([['c', { content: '{"a":1}' }]]) },
    ],
    [
      'a result without content',
      { messages: [{ role: 'tool', toolCallId: 'c' }] },
      { results: new Map([['c', { content: '""' }]]) },
    ],
    ['a result of no call', { messages: [{ role: 'tool', content: 'x' }] }, {}],
    ['nothing to resume', { messages: [user], resume: null }, { message: hi }],
    ['an empty list to resume', { messages: [user], resume: [] }, { message: hi }],
    ['a state', { messages: [user], state: { a: [1] } }, { message: hi, state: { a: [1] } }],
    ['a state of its own', { messages: [user], state: [1] }, { message: hi }],
    ['tools', { messages: [user], tools: [{ name: 't' }] }, { message: hi, tools: [{ name: 't' }] }],
  ])('with %s is read', (_, body, expected) => {
    const whole = { conversation: 't', answers: new Map(), state: {}, results: new Map(), tools: undefined };
    expect(readAgUi({ threadId: 't', ...body })).toEqual({ ...whole, ...expected });
  });

  it.each<[string, object]>([
    ['no thread', { threadId: undefined, messages: [user] }],
    ['an empty thread', { threadId: '', messages: [user] }],
    ['a thread of 201 characters', { threadId: 'x'.repeat(201), messages: [user] }],
    ['no message', { messages: [] }],
    ['messages that are no list', { messages: {} }],
    ['a last message of the assistant', { messages: [user, { role: 'assistant', content: 'a' }] }],
    ['a last message that is null', { messages: [user, null] }],
    ['an empty text', { messages: [{ ...user, content: '' }] }],
    ['empty texts', { messages: [{ ...user, content: [{ type: 'text', text: '' }] }] }],
    ['no parts', { messages: [{ ...user, content: [] }] }],
    ['content of no list', { messages: [{ ...user, content: 7 }] }],
    ['a part that is null', { messages: [{ ...user, content: [null] }] }],
    ['an id that is no text', { messages: [{ ...user, id: 7 }] }],
    ['an id of 201 characters', { messages: [{ ...user, id: 'x'.repeat(201) }] }],
    ['answers that are no list', { messages: [user], resume: {} }],
    ['an answer that is no object', { messages: [user], resume: ['1/c'] }],
    ['an answer to nothing', { messages: [user], resume: [{ status: 'cancelled' }] }],
    ['a state beyond 1 MiB', { messages: [user], state: { a: 'x'.repeat(1_048_577) } }],
    ['a state that is no JSON', { messages: [user], state: { a: 1n } }],
  ])('with %s is refused', (_, body) => {
    expect(() => readAgUi({ threadId: 't', ...body })).toThrow(malformed);
  });

  it.each([
    [1_048_576 - '{"a":""}'.length, true],
    [1_048_576 - '{"a":""}'.length + 1, false],
  ])('has a state of at most 1 MiB: %i characters are taken: %s', (length, isTaken) => {
    const read = () => readAgUi({ threadId: 't', messages: [user], state: { a: 'x'.repeat(length) } });
    if (isTaken) expect(read().state).toHaveProperty('a');
    else expect(read).toThrow(malformed);
  });
});

describe('a request of the AI SDK', () => {
  const user = { role: 'user', id: 'u', parts: [{ type: 'text', text: 'hi' }] };
  const hi = { id: 'u', content: [{ type: 'text', text: 'hi' }] };
  const asked = (id: string, approved = true) => ({
    type: 'tool-x',
    state: 'approval-responded',
    toolCallId: 'c',
    approval: { id, approved },
  });
  const assistant = { role: 'assistant', id: 'a', parts: [asked('1/c')] };
  const answers = (id = '1/c') => new Map([[id, { id, approved: true }]]);

  it.each<[string, object, object]>([
    ['a message', { messages: [user] }, { message: hi, answers: new Map(), parts: [] }],
    ['its trigger', { messages: [user], trigger: 'submit-message' }, { message: hi, answers: new Map(), parts: [] }],
    [
      'parts that are ignored',
      { messages: [{ ...user, parts: [{ type: 'data-x', data: 1 }, ...user.parts, { type: 'source-url' }] }] },
      { message: hi, answers: new Map(), parts: [] },
    ],
    ['an approval', { messages: [user, assistant] }, { answers: answers(), parts: assistant.parts }],
    [
      'an approval that is asked again',
      { messages: [{ ...assistant, parts: [asked('1/c#asked-again-by-run_2')] }] },
      {
        answers: new Map([['1/c', { id: '1/c#asked-again-by-run_2', approved: true }]]),
        parts: [asked('1/c#asked-again-by-run_2')],
      },
    ],
    [
      'an approval of an earlier message that it names',
      { messages: [assistant, user], messageId: 'a' },
      { answers: answers(), parts: assistant.parts },
    ],
    [
      'a message id of its own',
      { messages: [assistant, user], messageId: 'u' },
      { message: hi, answers: new Map(), parts: [] },
    ],
    [
      'an open question',
      { messages: [{ ...assistant, parts: [{ ...asked('1/c'), state: 'approval-requested' }] }] },
      { answers: new Map(), parts: [{ ...asked('1/c'), state: 'approval-requested' }] },
    ],
    [
      'a regeneration',
      { messages: [user, assistant], trigger: 'regenerate-message' },
      { message: hi, isRegenerated: true, answers: new Map(), parts: [] },
    ],
    [
      'a regeneration of the last of two',
      { messages: [{ ...user, id: 'v' }, assistant, user], trigger: 'regenerate-message' },
      { message: hi, isRegenerated: true, answers: new Map(), parts: [] },
    ],
  ])('with %s is read', (_, body, expected) => {
    expect(readUiMessages({ id: 't', ...body })).toEqual({ conversation: 't', ...expected });
  });

  it.each<[string, object]>([
    ['no id', { id: undefined, messages: [user] }],
    ['an id of 201 characters', { id: 'x'.repeat(201), messages: [user] }],
    ['no message', { messages: [] }],
    ['no messages', {}],
    ['an unknown trigger', { messages: [user], trigger: 'other' }],
    ['an unknown role', { messages: [{ ...user, role: 'system' }] }],
    ['no parts', { messages: [{ ...user, parts: undefined }] }],
    ['a part that is no object', { messages: [{ ...user, parts: ['hi'] }] }],
    ['only parts that are ignored', { messages: [{ ...user, parts: [{ type: 'data-x' }] }] }],
    ['a text part without text', { messages: [{ ...user, parts: [{ type: 'text' }] }] }],
    ['a file without a type', { messages: [{ ...user, parts: [{ type: 'file', url: 'data:,x' }] }] }],
    ['a regeneration of nothing', { messages: [assistant], trigger: 'regenerate-message' }],
  ])('with %s is refused', (_, body) => {
    expect(() => readUiMessages({ id: 't', ...body })).toThrow(malformed);
  });
});

describe('a part of a message', () => {
  const file = (mediaType: string, data: string, name?: string) => ({
    type: mediaType.startsWith('image/') ? 'image' : 'file',
    mediaType,
    data,
    ...(name && { name }),
  });
  const KINDS = [
    ['image', 'image/png'],
    ['audio', 'audio/mpeg'],
    ['video', 'video/mp4'],
    ['document', 'application/pdf'],
  ] as const;

  it.each(KINDS)('of AG-UI of type %s without a media type is %s', (type, usual) => {
    for (const source of [
      { type: 'data', value: 'eA==' },
      { type: 'url', value: 'http://h/x' },
    ]) {
      expect(readAgUiPart({ type, source })).toEqual(file(usual, source.value));
      expect(readAgUiPart({ type, source: { ...source, mimeType: 'text/csv' }, metadata: { filename: 'n' } })).toEqual(
        file('text/csv', source.value, 'n'),
      );
      expect(readAgUiPart({ type, source: { ...source, mimeType: 'image/gif' }, metadata: { filename: '' } })).toEqual(
        file('image/gif', source.value),
      );
    }
    expect(() => readAgUiPart({ type, source: { type: 'file', value: 'id' } })).toThrow(malformed);
    expect(() => readAgUiPart({ type, source: { type: 'data' } })).toThrow(malformed);
    expect(() => readAgUiPart({ type })).toThrow(malformed);
  });

  it.each<[object, object | undefined]>([
    [
      { type: 'text', text: '' },
      { type: 'text', text: '' },
    ],
    [{ type: 'text' }, undefined],
    [{ type: 'binary', mimeType: 'a/b', data: 'eA==', filename: 'f' }, file('a/b', 'eA==', 'f')],
    [{ type: 'binary', mimeType: 'a/b', data: '', url: 'http://h' }, file('a/b', 'http://h')],
    [{ type: 'binary', mimeType: 'image/png', url: 'http://h' }, file('image/png', 'http://h')],
    [{ type: 'binary', mimeType: 'a/b', id: 'x' }, undefined],
    [{ type: 'binary', data: 'eA==' }, undefined],
    [{ type: 'other' }, undefined],
    [{}, undefined],
  ])('of AG-UI %j is %j', (part, expected) => {
    if (expected) expect(readAgUiPart(part as never)).toEqual(expected);
    else expect(() => readAgUiPart(part as never)).toThrow(malformed);
  });

  it('comes back to a page as it came', () => {
    for (const [mediaType, name] of [
      ['image/png', undefined],
      ['application/pdf', 'a.pdf'],
      ['text/csv', undefined],
    ] as const) {
      const stored = file(mediaType, 'data:x', name);
      const [read] = readUiPart(uiPartOf({ ...stored, data: 'eA==' } as never) as never);
      expect(read).toMatchObject({ type: stored.type, mediaType, ...(name && { name }) });
      const [shown] = agUiContentOf([{ ...stored, data: 'eA==' } as never]) as { [key: string]: unknown }[];
      expect(readAgUiPart(shown as never)).toEqual({ ...stored, data: 'eA==' });
    }
    expect(agUiContentOf([{ type: 'text', text: 'a' }])).toBe('a');
    expect(agUiContentOf([file('constructor/x', 'eA==')] as never)).toMatchObject([{ type: 'document' }]);
  });
});

describe('the path of a chat', () => {
  const read = (method: string, path: string, base: string | undefined, hasHistory = true): string => {
    try {
      const found = chatPath(new Request(`http://h${path}`, { method }), base, hasHistory);
      return found.kind === 'chat' ? 'chat' : `${found.kind} ${found.id}`;
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  it.each<[string | undefined, string, string, string, string]>([
    ['/c', 'POST', '/c', 'chat', 'chat'],
    ['/c', 'POST', '/c/', 'chat', 'chat'],
    ['/c/', 'POST', '/c', 'chat', 'chat'],
    ['/c', 'GET', '/c', 'method', 'method'],
    ['/c', 'GET', '/c/a', 'history a', 'not_found'],
    ['/c', 'GET', '/c/a%2Fb', 'history a/b', 'not_found'],
    ['/c', 'GET', '/c/stream', 'history stream', 'not_found'],
    ['/c', 'GET', '/c/a/stream', 'stream a', 'not_found'],
    ['/c', 'POST', '/c/a/stop', 'stop a', 'stop a'],
    ['/c', 'POST', '/c/a/stream', 'method', 'not_found'],
    ['/c', 'GET', '/c/a/stop', 'method', 'method'],
    ['/c', 'DELETE', '/c/a', 'method', 'not_found'],
    ['/c', 'GET', '/c/a/x', 'not_found', 'not_found'],
    ['/c', 'GET', '/c/a/constructor', 'not_found', 'not_found'],
    ['/c', 'POST', '/c/a/toString', 'not_found', 'not_found'],
    ['/c', 'POST', '/c/a/stop/x', 'not_found', 'not_found'],
    ['/c', 'GET', '/c//stream', 'not_found', 'not_found'],
    ['/c', 'GET', '/cx/a', 'not_found', 'not_found'],
    ['/c', 'POST', '/x/c', 'not_found', 'not_found'],
    ['/c', 'GET', '/c/%E0', 'not_found', 'not_found'],
    ['', 'POST', '/', 'chat', 'chat'],
    ['', 'GET', '/a', 'history a', 'not_found'],
    [undefined, 'POST', '/any/place', 'chat', 'chat'],
    [undefined, 'POST', '/', 'chat', 'chat'],
    [undefined, 'GET', '/any/place/a', 'history a', 'method'],
    [undefined, 'GET', '/any/place/a/', 'history a', 'method'],
    [undefined, 'GET', '/any/a/stream', 'stream a', 'method'],
    [undefined, 'POST', '/any/a/stop', 'stop a', 'stop a'],
    [undefined, 'POST', '/stop', 'chat', 'chat'],
    [undefined, 'PUT', '/any', 'method', 'method'],
  ])('under %j: %s %s is %s, and %s without a history', (base, method, path, withHistory, without) => {
    expect([read(method, path, base), read(method, path, base, false)]).toEqual([withHistory, without]);
  });
});

describe('the end of a run', () => {
  const entries = (end: object): LogEntry[] =>
    [{ type: 'run-started' }, { type: 'run-stop', ...end }].map(
      (fields, seq) => ({ seq, at: 0, conversationId: 'c', runId: 'r', ...fields }) as LogEntry,
    );
  const last = async (source: typeof toAgUi, end: object, count: number) =>
    ((await lastValueFrom(source(from(entries(end))).pipe(toArray<object>()))) as { type: string }[]).slice(-count);

  it.each<[string, string | undefined, object, object[]]>([
    ['completed', 'end_turn', { outcome: { type: 'success' } }, [{ type: 'finish', finishReason: 'stop' }]],
    ['completed', 'max_tokens', { outcome: { type: 'success' } }, [{ type: 'finish', finishReason: 'length' }]],
    ['completed', 'max_turns', { outcome: { type: 'success' } }, [{ type: 'finish', finishReason: 'other' }]],
    ['completed', undefined, { outcome: { type: 'success' } }, [{ type: 'finish', finishReason: 'other' }]],
    ['interrupted', 'user', { outcome: { type: 'cancelled' } }, [{ type: 'abort', reason: 'user' }]],
    ['interrupted', undefined, { outcome: { type: 'cancelled' } }, [{ type: 'abort', reason: '' }]],
    [
      'error',
      'model',
      { message: 'the run ended: model', code: 'model' },
      [
        { type: 'error', errorText: 'the run ended: model' },
        { type: 'finish', finishReason: 'error' },
      ],
    ],
    [
      'error',
      'max_tokens',
      { message: 'the run ended: max_tokens', code: 'max_tokens' },
      [
        { type: 'error', errorText: 'the run ended: max_tokens' },
        { type: 'finish', finishReason: 'length' },
      ],
    ],
    [
      'error',
      undefined,
      { message: 'the run ended: error' },
      [
        { type: 'error', errorText: 'the run ended: error' },
        { type: 'finish', finishReason: 'error' },
      ],
    ],
  ])(
    'that is %s by %s is an event of AG-UI and the last chunks of the AI SDK',
    async (reason, cause, event, chunks) => {
      const stop = { reason, ...(cause !== undefined && { cause }) };
      const ids = reason === 'error' ? { type: 'RUN_ERROR' } : { type: 'RUN_FINISHED', threadId: 'c', runId: 'r' };
      expect(await last(toAgUi, stop, 1)).toEqual([{ ...ids, ...event }]);
      expect(await last(toUiMessages, stop, chunks.length)).toEqual(chunks);
    },
  );
});

describe('a message of a line transport', () => {
  const TYPES: Readonly<Record<string, readonly string[]>> = {
    'user-message': ['content', 'kind'],
    decision: ['decision'],
    settlement: ['callId', 'how'],
    cancel: [],
    resume: [],
    close: [],
    list: [],
  };
  it.each(Object.entries(TYPES))('of type %s takes its fields, and no others', (type, fields) => {
    const named = type === 'list' ? {} : { conversation: 'c' };
    const message = {
      type,
      ...named,
      requestId: 'r',
      ...Object.fromEntries(fields.map((field) => [field, field === 'kind' ? 'steer' : 'x'])),
    };
    expect(readIncoming(message)).toEqual({ type, conversation: type === 'list' ? undefined : 'c', fields: message });
    for (const field of new Set([...Object.values(TYPES).flat(), 'by', 'owner', '__proto__']))
      if (!fields.includes(field))
        expect(() =>
          readIncoming(JSON.parse(JSON.stringify(message).replace('{', `{${JSON.stringify(field)}:"x",`))),
        ).toThrow(malformed);
    if (type === 'list') return;
    const without = { ...message, conversation: undefined };
    if (type === 'user-message') expect(readIncoming(without).conversation).toBeUndefined();
    else expect(() => readIncoming(without)).toThrow(malformed);
    for (const conversation of ['', 7, null, 'x'.repeat(201)])
      expect(() => readIncoming({ ...message, conversation })).toThrow(malformed);
  });

  it.each([
    null,
    undefined,
    7,
    'list',
    [],
    {},
    { type: 7 },
    { type: 'toString' },
    { type: '__proto__' },
    { type: 'hello' },
  ])('%j is refused', (message) => {
    expect(() => readIncoming(message)).toThrow(malformed);
  });

  it.each([
    ['x'.repeat(200), true],
    ['x'.repeat(201), false],
    ['', true],
    [7, false],
    [null, false],
    [undefined, false],
  ])('the request id %j is repeated in the answer: %s', (requestId, isRepeated) => {
    expect(requestIdOf({ requestId })).toBe(isRepeated ? requestId : undefined);
  });
});
