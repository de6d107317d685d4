/** Files in chats of the AI SDK and of AG-UI, with the protocols' own clients, and over plain HTTP with `runchart/client`. */
import { randomUUID } from 'node:crypto';
import type { Message as AgUiMessage } from '@ag-ui/core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connect } from '../../src/client/index.ts';
import { createAgent, memoryStore } from '../../src/index.ts';
import { agUiHandler, createHandlers, uiMessageHandler } from '../../src/transports/index.ts';
import { base64Of, pdf, wav } from '../support/sampleFiles.ts';
import { base64, dot } from '../support/samplePictures.ts';
import { scripted } from '../support/scriptedReplies.ts';
import { agUiPage, ChatPage, served } from './chatPages.ts';

const PDF = 'application/pdf';
const url = `data:application/pdf;base64,${base64Of(pdf)}`;
const report = { type: 'file' as const, mediaType: PDF, filename: 'report.pdf', url };
const shown = { type: 'file', mediaType: PDF, name: 'report.pdf', data: base64Of(pdf) };

function agentOf(replies: string[], accepts?: string[]) {
  const model = { ...scripted(replies), ...(accepts && { accepts }) };
  const agent = createAgent({ model, store: memoryStore() });
  onTestFinished(() => agent.close());
  return { agent, model };
}

describe('a page of the AI SDK', () => {
  it('sends a file, and the history gives it back with its name', async () => {
    const { agent, model } = agentOf(['one', 'two']);
    const { url: at } = await served(uiMessageHandler(agent, { authorize: () => true }));
    const page = new ChatPage(at);
    await page.sendMessage({ text: 'Sum it up.', files: [report] });
    expect(model.calls[0]?.messages[0]?.content).toContainEqual(shown);
    const history = (await (await fetch(`${at}c`)).json()) as { parts: object[] }[];
    expect(history[0]?.parts).toContainEqual(report);
    // The same message again is a repetition, and another file is an edit.
    await page.regenerate();
    expect(model.calls[1]?.messages).toEqual(model.calls[0]?.messages.slice(0, 1));
  });

  it('receives 415 for a file that the model does not accept, and 400 for a value that is no file', async () => {
    const { agent, model } = agentOf([], ['image/*']);
    const { url: at } = await served(uiMessageHandler(agent, { authorize: () => true }));
    const post = async (part: object) => {
      const body = {
        id: 'c',
        trigger: 'submit-message',
        messages: [{ id: randomUUID(), role: 'user', parts: [part] }],
      };
      const response = await fetch(at, {
        ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
        body: JSON.stringify(body),
      });
      return [response.status, ((await response.json()) as { code: string }).code];
    };
    expect(await post(report)).toEqual([415, 'media_type']);
    expect(await post({ ...report, url: 'data:application/pdf,x' })).toEqual([400, 'configuration']);
    expect(await post({ ...report, filename: 'n'.repeat(300) })).toEqual([400, 'configuration']);
    expect(await post({ type: 'file', mediaType: 'nothing', url })).toEqual([400, 'configuration']);
    expect(model.calls).toEqual([]);
  });
});

describe('a page of AG-UI', () => {
  const document = {
    ...{ type: 'document', source: { type: 'data', value: base64Of(pdf), mimeType: PDF } },
    metadata: { filename: 'report.pdf' },
  };
  const sound = { type: 'audio', source: { type: 'data', value: base64Of(wav), mimeType: 'audio/wav' } };
  const picture = { type: 'image', source: { type: 'data', value: base64(dot), mimeType: 'image/png' } };

  it('sends files in parts of this version and of earlier ones, and another page receives them', async () => {
    const { agent, model } = agentOf(['one', 'two']);
    const { url: at } = await served(agUiHandler(agent, { authorize: () => true }));
    const page = agUiPage(at);
    const binary = { type: 'binary', mimeType: PDF, data: base64Of(pdf), filename: 'old.pdf' };
    const content = [{ type: 'text', text: 'All of them.' }, document, sound, picture, binary];
    page.addMessage({ id: 'm1', role: 'user', content } as unknown as AgUiMessage);
    await page.runAgent();
    expect(model.calls[0]?.messages[0]?.content).toEqual([
      { type: 'text', text: 'All of them.' },
      shown,
      { type: 'file', mediaType: 'audio/wav', data: base64Of(wav) },
      { type: 'image', mediaType: 'image/png', data: base64(dot) },
      { ...shown, name: 'old.pdf' },
    ]);
    const other = agUiPage(at);
    other.addMessage({ id: 'm2', role: 'user', content: 'And?' });
    await other.runAgent();
    expect(other.messages[0]).toEqual({
      ...{ id: 'm1', role: 'user' },
      content: [
        { type: 'text', text: 'All of them.' },
        document,
        sound,
        picture,
        { ...document, metadata: { filename: 'old.pdf' } },
      ],
    });
  });

  it.each([
    ['a handle of a provider', { type: 'document', source: { type: 'file', value: 'file-1' } }],
    ['no source', { type: 'document' }],
    ['a binary part without bytes', { type: 'binary', mimeType: PDF, id: 'x' }],
    ['an inherited name', { type: 'constructor', source: { type: 'data', value: 'AAAA' } }],
  ])('is refused with %s', async (_, part) => {
    const { agent } = agentOf([]);
    const { url: at } = await served(agUiHandler(agent, { authorize: () => true }));
    const body = { threadId: 'c', runId: 'r', messages: [{ id: 'm', role: 'user', content: [part] }] };
    const response = await fetch(at, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
      body: JSON.stringify(body),
    });
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([400, 'malformed']);
  });
});

it('runchart/client sends bytes, and names a media type that the model does not accept', async () => {
  const { agent, model } = agentOf(['one'], [PDF]);
  const { url: baseURL } = await served(createHandlers(agent, { authorize: () => true }));
  const remote = connect({ baseURL });
  onTestFinished(() => remote.close());
  const conversation = await remote.open('c');
  const refused = await conversation.send([{ type: 'file', mediaType: 'audio/wav', data: wav }]).result;
  expect(refused.error).toMatchObject({ code: 'media_type', message: expect.stringContaining('got audio/wav') });
  const file = { type: 'file' as const, mediaType: PDF, name: 'report.pdf', data: pdf };
  expect(await conversation.send([file]).text).toBe('one');
  expect(model.calls[0]?.messages[0]?.content).toEqual([shown]);
  expect(conversation.messages()[0]?.content).toMatchObject([{ type: 'file', name: 'report.pdf' }]);
});
