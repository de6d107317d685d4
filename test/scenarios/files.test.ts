/** Files from the message to the model, and the refusal of media types that a model does not accept. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import {
  createAgent,
  defineTool,
  type LogEntry,
  MediaTypeError,
  type Model,
  ModelError,
  type ModelRequest,
  memoryStore,
  type StoredPart,
  toolResult,
} from '../../src/index.ts';
import { logEntrySchema } from '../../src/schema.ts';
import { scriptedModel } from '../../src/testing/scriptedModel.ts';
import { place } from '../stores/storeDirectory.ts';
import { base64Of, largePdf, markdown, pdf } from '../support/sampleFiles.ts';
import { base64, dot } from '../support/samplePictures.ts';

const PDF = 'application/pdf';
const report = { type: 'file' as const, mediaType: PDF, name: 'report.pdf', data: pdf };
const picture = { type: 'image' as const, mediaType: 'image/png', data: dot };
const shown = { type: 'file', mediaType: PDF, name: 'report.pdf', data: base64Of(pdf) };

/** A model that records its requests, and accepts these media types. */
function model(id: string, accepts: string[] | undefined, reply: string | ModelError = 'fine') {
  const requests: ModelRequest[] = [];
  const made: Model = {
    id,
    ...(accepts && { accepts }),
    async *stream(request) {
      requests.push(structuredClone(request));
      if (typeof reply !== 'string') throw reply;
      yield { type: 'text-delta', text: reply };
      yield { type: 'finish', reason: 'stop' };
    },
  };
  return Object.assign(made, { requests });
}
const last = (requests: readonly ModelRequest[]): readonly StoredPart[] =>
  requests
    .at(-1)
    ?.messages.filter(({ role }) => role === 'user')
    .at(-1)?.content ?? [];

async function opened(options: Parameters<typeof createAgent>[0], id = 'c') {
  const agent = createAgent({ store: memoryStore(), ...options });
  onTestFinished(() => agent.close());
  return { agent, conversation: await agent.open(id) };
}
const entriesOf = <T extends LogEntry['type']>(entries: readonly LogEntry[], type: T) =>
  entries.filter((entry): entry is Extract<LogEntry, { type: T }> => entry.type === type);
function thrown(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

describe('a message with a file', () => {
  it('is logged with its name and a reference, and the model receives its bytes, also in another process', async () => {
    const { store } = await place();
    const reader = model('reader', [PDF]);
    const { agent, conversation } = await opened({ model: reader, store });
    expect(await conversation.send([{ type: 'text', text: 'Sum it up.' }, report]).text).toBe('fine');
    const [entry] = entriesOf(conversation.log(), 'user-message');
    const reference = expect.stringMatching(/^blob:[0-9a-f]{64}:application\/pdf$/);
    const content = [
      { type: 'text', text: 'Sum it up.' },
      { ...shown, data: reference },
    ];
    expect(entry?.content).toEqual(content);
    expect(conversation.view().cycles[0]?.root.content).toEqual(content);
    expect(conversation.messages()[0]?.content).toEqual(content);
    expect(last(reader.requests)[1]).toEqual(shown);
    for (const each of conversation.log())
      expect(logEntrySchema['~standard'].validate(each)).not.toHaveProperty('issues');
    await agent.close();
    const later = model('reader', [PDF]);
    const again = await opened({ model: later, store });
    await again.conversation.send('And?').result;
    expect(later.requests[0]?.messages[0]).toEqual(reader.requests[0]?.messages[0]);
  });

  it('above policies.limits.fileBytes is refused, and nothing is logged', async () => {
    const { conversation } = await opened({ model: scriptedModel(['ok']), policies: { limits: { fileBytes: 100 } } });
    const before = conversation.log().length;
    const large = { ...report, data: largePdf(101) };
    for (const act of [() => conversation.send([large]), () => conversation.followUp([large])])
      expect(thrown(act)).toMatchObject({ code: 'configuration', message: "a file's bytes may be 100, got more" });
    expect(conversation.log()).toHaveLength(before);
    expect(await conversation.send([{ ...report, data: largePdf(100) }]).text).toBe('ok');
  });

  it('in the result of a tool is stored too; one above 32 MiB of base64 fails with too_large', async () => {
    const look = defineTool({
      ...{ name: 'look', description: 'Looks.', parameters: z.object({ bytes: z.number() }) },
      execute: ({ bytes }) => toolResult.success([{ ...report, data: largePdf(bytes) }]),
    });
    const call = (bytes: number) => ({
      parts: [
        { type: 'tool-call' as const, callId: `c${bytes}`, name: 'look', args: JSON.stringify({ bytes }) },
        { type: 'finish' as const, reason: 'tool-calls' as const },
      ],
    });
    const scripted = scriptedModel([call(100), call(25_165_825), 'done']);
    const { conversation } = await opened({ model: scripted, tools: [look] });
    await conversation.send('Look.').result;
    const results = entriesOf(conversation.log(), 'tool-result');
    expect(results.map(({ code, outcome }) => code ?? outcome)).toEqual(['succeeded', 'too_large']);
    const reference = expect.stringMatching(/^blob:/);
    expect(results[0]?.content[0]).toMatchObject({ type: 'file', name: 'report.pdf', data: reference });
    expect(scripted.calls[1]?.messages.at(-1)?.content[0]).toMatchObject({ data: base64Of(largePdf(100)) });
  });

  it('may be in the history that a conversation is opened with', async () => {
    const reader = model('reader', ['image/*']);
    const agent = createAgent({ model: reader, store: memoryStore() });
    onTestFinished(() => agent.close());
    const conversation = await agent.open('c', { history: [{ role: 'user', content: [report] }] });
    await conversation.send('And?').result;
    expect(reader.requests[0]?.messages[0]?.content[0]).toMatchObject({
      text: expect.stringContaining('report.pdf (application/pdf)) belongs here'),
    });
  });
});

describe('a media type that the model does not accept', () => {
  it.each([
    ['a PDF', report, 'application/pdf'],
    ['a PDF by URL', { ...report, data: 'https://files.test/a.pdf' }, 'application/pdf'],
    ['a hostile name', { ...report, name: 'a\u001b]0;x\u0007\u202e.pdf' }, 'application/pdf'],
    ['a sound', { type: 'file' as const, mediaType: 'Audio/WAV; rate=8', data: new Uint8Array([1]) }, 'audio/wav'],
  ])('%s: send, steer and followUp are refused, and nothing is lost', async (_, part, label) => {
    const eyes = model('eyes', ['image/*']);
    const { conversation, agent } = await opened({ model: eyes });
    const before = conversation.log().length;
    const acts = [
      () => conversation.send([{ type: 'text', text: 'x' }, part]),
      () => conversation.send([part], { kind: 'followUp' }),
      () => conversation.steer([part]),
      () => conversation.followUp([part]),
    ];
    for (const act of acts) {
      const error = thrown(act) as MediaTypeError;
      expect(error).toBeInstanceOf(MediaTypeError);
      expect(error.code).toBe('media_type');
      expect(error.message).toContain(`the model eyes accepts text, image/*, got ${label}: `);
    }
    await expect(agent.run([part])).rejects.toMatchObject({ code: 'media_type' });
    expect(conversation.log()).toHaveLength(before);
    expect(conversation.status).toBe('idle');
    expect(await conversation.send([picture]).text).toBe('fine');
    expect(eyes.requests).toHaveLength(1);
  });

  it('an image is refused by a model for text alone, and a file of text never is', async () => {
    const { conversation } = await opened({ model: model('words', []) });
    expect((thrown(() => conversation.send([picture])) as Error).message).toContain('accepts text, got image/png');
    const notes = { type: 'file' as const, mediaType: 'text/markdown', name: 'notes.md', data: markdown };
    expect(await conversation.send([notes]).text).toBe('fine');
  });

  it('the model that a request names decides, and what it does not accept of the history is named in a text', async () => {
    const [words, reader] = [model('words', []), model('reader', [PDF])];
    const { conversation } = await opened({ model: words, models: { reader } });
    expect(() => conversation.send([report])).toThrow(MediaTypeError);
    await conversation.send([report], { model: 'reader' }).result;
    expect(last(reader.requests)[0]).toEqual(shown);
    await conversation.send('And?').result;
    expect(words.requests[0]?.messages[0]?.content).toEqual([
      {
        type: 'text',
        text: '[A file (report.pdf (application/pdf)) belongs here. It is not shown: this model takes no application/pdf.]',
      },
    ]);
    // The log keeps the file, so a later request can send it again.
    await conversation.send('Once more.', { model: 'reader' }).result;
    expect(reader.requests[1]?.messages[0]?.content).toEqual([shown]);
  });

  it('a steer is judged by the model of the request that it joins', async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow: Model = {
      ...{ id: 'slow', accepts: [PDF] },
      async *stream() {
        await held;
        yield { type: 'text-delta', text: 'ok' };
        yield { type: 'finish', reason: 'stop' };
      },
    };
    const { conversation } = await opened({ model: model('words', []), models: { slow } });
    const run = conversation.send('Go.', { model: 'slow' });
    await expect.poll(() => conversation.status).toBe('active');
    await expect.poll(() => conversation.log().some(({ type }) => type === 'user-message')).toBe(true);
    expect(() => conversation.followUp([report])).toThrow(MediaTypeError);
    const { delivered } = conversation.steer([report]);
    release();
    await run.result;
    expect(await delivered).toBe('delivered');
  });

  it('a fallback model that does not accept a message is skipped', async () => {
    const down = new ModelError({ code: 'server', message: 'the server is down' });
    const [first, eyes, reader] = [model('first', [PDF], down), model('eyes', ['image/*']), model('reader', [PDF])];
    const modelRetry = { attempts: 1, fallbackModels: [eyes, reader] };
    const { conversation } = await opened({ model: first, policies: { modelRetry } });
    expect(await conversation.send([report]).text).toBe('fine');
    expect([eyes.requests.length, reader.requests.length]).toEqual([0, 1]);
    expect(entriesOf(conversation.log(), 'model-retry').map((entry) => entry.model)).toEqual(['reader']);
    // A later request has only text of its own, so the first fallback is taken again.
    await conversation.send('And?').result;
    expect([eyes.requests.length, reader.requests.length]).toEqual([1, 1]);
  });

  it('without a fallback that accepts it, the run ends with the failure of the model', async () => {
    const down = new ModelError({ code: 'server', message: 'the server is down' });
    const eyes = model('eyes', ['image/*']);
    const modelRetry = { attempts: 1, fallbackModels: [eyes] };
    const { conversation } = await opened({ model: model('first', [PDF], down), policies: { modelRetry } });
    const { error } = await conversation.send([report]).result;
    expect(error).toMatchObject({ code: 'server', message: 'the server is down' });
    expect(eyes.requests).toHaveLength(0);
  });

  it('in a result of a tool is named in a text', async () => {
    const look = defineTool({
      ...{ name: 'look', description: 'Looks.', parameters: z.object({}) },
      execute: () => toolResult.success([{ type: 'text', text: 'here' }, report, picture]),
    });
    const call = { type: 'tool-call' as const, callId: 'a', name: 'look', args: '{}' };
    const scripted = scriptedModel([{ parts: [call, { type: 'finish', reason: 'tool-calls' }] }, 'ok']);
    const eyes = Object.assign(scripted, { accepts: ['image/*'] });
    const { conversation } = await opened({ model: eyes, tools: [look] });
    expect(await conversation.send('Look.').text).toBe('ok');
    expect(scripted.calls[1]?.messages.at(-1)?.content).toEqual([
      { type: 'text', text: 'here' },
      { type: 'text', text: expect.stringContaining('this model takes no application/pdf') },
      { type: 'image', mediaType: 'image/png', data: base64(dot) },
    ]);
  });
});
