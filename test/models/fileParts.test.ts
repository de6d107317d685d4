/** Files at the wire of each adapter: PDFs, texts and sounds, by bytes and by URL, and the media types that each accepts. */
import { describe, expect, it } from 'vitest';
import type { Message, StoredPart } from '../../machines/vocabulary.ts';
import { ConfigurationError } from '../../src/errors.ts';
import { callOptions } from '../../src/models/aiSdk/sdkPrompt.ts';
import { anthropic } from '../../src/models/anthropic/anthropic.ts';
import { wireMessages as anthropicMessages } from '../../src/models/anthropic/messagesContent.ts';
import { wireMessages as chatMessages } from '../../src/models/openai/chatRequest.ts';
import { openai } from '../../src/models/openai/openai.ts';
import { openaiResponses } from '../../src/models/openai/responses.ts';
import { inputItems } from '../../src/models/openai/responsesRequest.ts';
import { base64Of, markdown, pdf, wav } from '../support/sampleFiles.ts';

const PDF = 'application/pdf';
const file = (mediaType: string, data: string, name?: string): StoredPart => ({
  ...{ type: 'file', mediaType, data },
  ...(name !== undefined && { name }),
});
const report = file(PDF, base64Of(pdf), 'report\u202e.pdf');
const unnamed = file(PDF, `data:text/plain;base64,${base64Of(pdf)}`);
const remote = file(PDF, 'https://files.test/a.pdf', 'a.pdf');
const notes = file('text/markdown', base64Of(markdown), 'notes.md');
const lost = file(PDF, `blob:${'a'.repeat(64)}:application/pdf`, 'lost.pdf');
const notesText = '[file notes.md (text/markdown)]\n# Notes\n\nBuy milk, süß.\n\n[end of file]';
const LOST = '[file lost.pdf (application/pdf): not available]';
const user = (...content: StoredPart[]): Message[] => [{ role: 'user', content }];
const result = (...content: StoredPart[]): Message => ({ role: 'tool', callId: 'a', content, isError: false });
const dataUrl = `data:application/pdf;base64,${base64Of(pdf)}`;

describe('chat completions', () => {
  const sent = (...content: StoredPart[]): unknown => chatMessages('', user(...content))[0]?.content;

  it('has file parts for PDFs, with a name always', () =>
    expect(sent(report, unnamed)).toEqual([
      { type: 'file', file: { filename: 'report.pdf', file_data: dataUrl } },
      { type: 'file', file: { filename: 'file.pdf', file_data: dataUrl } },
    ]));

  it('has parts for sounds of two formats', () => {
    const types = ['audio/wav', 'audio/x-wav', 'Audio/WAV; rate=1', 'audio/mpeg', 'audio/mp3'];
    expect(sent(...types.map((type) => file(type, base64Of(wav))))).toEqual(
      ['wav', 'wav', 'wav', 'mp3', 'mp3'].map((format) => ({
        type: 'input_audio',
        input_audio: { data: base64Of(wav), format },
      })),
    );
  });

  it('has a text for a text, a URL and lost bytes', () =>
    expect(sent(notes, remote, lost)).toEqual(
      [
        notesText,
        '[file a.pdf (application/pdf): at https://files.test/a.pdf: not sent, this API takes no URL of a file]',
        LOST,
      ].map((text) => ({ type: 'text', text })),
    ));

  it('sends files of a result after it', () =>
    expect(chatMessages('', [result({ type: 'text', text: 'here' }, report, notes)])).toEqual([
      {
        ...{ role: 'tool', tool_call_id: 'a' },
        content: `here\n${notesText}\n[1 file(s) of this result follow in the next user message]`,
      },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'File(s) of the result of tool call a:' },
          { type: 'file', file: { filename: 'report.pdf', file_data: dataUrl } },
        ],
      },
    ]));
});

describe('the Responses API', () => {
  const parts = [
    { type: 'input_file', filename: 'report.pdf', file_data: dataUrl },
    { type: 'input_file', file_url: 'https://files.test/a.pdf' },
    { type: 'input_text', text: notesText },
    { type: 'input_text', text: LOST },
  ];

  it('has file parts by bytes and by URL, in messages and in results', () => {
    expect(inputItems(user(report, remote, notes, lost), '')).toEqual([{ role: 'user', content: parts }]);
    expect(inputItems([result(report, remote, notes, lost)], '')).toEqual([
      { type: 'function_call_output', call_id: 'a', output: parts },
    ]);
  });
});

describe('the Messages API', () => {
  const documents = [
    { type: 'document', title: 'report.pdf', source: { type: 'base64', media_type: PDF, data: base64Of(pdf) } },
    { type: 'document', source: { type: 'base64', media_type: PDF, data: base64Of(pdf) } },
    { type: 'document', title: 'a.pdf', source: { type: 'url', url: 'https://files.test/a.pdf' } },
    {
      ...{ type: 'document', title: 'notes.md' },
      source: { type: 'text', media_type: 'text/plain', data: '# Notes\n\nBuy milk, süß.\n' },
    },
  ];

  it('has documents for PDFs and texts, in messages and in results', () => {
    const content = [report, unnamed, remote, notes];
    expect(anthropicMessages(user(...content), '')).toEqual([{ role: 'user', content: documents }]);
    expect(anthropicMessages([result(...content)], '')).toEqual([
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: documents }] },
    ]);
  });

  it('has a text for what it cannot send', () => {
    const texts = [
      lost,
      file('text/plain', 'https://files.test/n.txt'),
      file('audio/wav', base64Of(wav)),
      file('text/plain', base64Of(new Uint8Array([10]))),
    ];
    expect(anthropicMessages(user(...texts), '')[0]?.content).toEqual(
      [
        LOST,
        '[file text/plain: at https://files.test/n.txt: not sent, this API takes only URLs of images and PDFs]',
        '[file audio/wav: not sent, this API has no part for it]',
        '[file text/plain: it is empty]',
      ].map((text) => ({ type: 'text', text })),
    );
  });
});

describe('a provider of the AI SDK', () => {
  const supportedUrls = { 'application/pdf': [/^https:\/\/files\.test\//] };
  const sent = (version: 'v2' | 'v3' | 'v4', messages: Message[]): unknown =>
    callOptions({ system: '', tools: [], messages }, { provider: 'p', version, supportedUrls }, {}).prompt;

  it.each(['v2', 'v3', 'v4'] as const)('%s receives file parts with name and media type', (version) => {
    const data = (value: string | URL): unknown =>
      version !== 'v4'
        ? value
        : typeof value === 'string'
          ? { type: 'data', data: value }
          : { type: 'url', url: value };
    expect(sent(version, user(report, remote, unnamed, lost))).toEqual([
      {
        role: 'user',
        content: [
          { type: 'file', mediaType: PDF, filename: 'report.pdf', data: data(base64Of(pdf)) },
          { type: 'file', mediaType: PDF, filename: 'a.pdf', data: data(new URL('https://files.test/a.pdf')) },
          { type: 'file', mediaType: PDF, data: data(base64Of(pdf)) },
          { type: 'text', text: LOST },
        ],
      },
    ]);
  });

  it('receives files of a result after it, and a text for a URL that it does not fetch', () =>
    expect(sent('v3', [result(report, file(PDF, 'https://other.test/a.pdf'))])).toMatchObject([
      { content: [{ output: { value: '[2 file(s) of this result follow in the next user message]' } }] },
      {
        content: [
          { text: 'File(s) of the result of tool call a:' },
          { type: 'file' },
          { text: '[file application/pdf at https://other.test/a.pdf: not sent, this provider takes no such URL]' },
        ],
      },
    ]));
});

describe('a model accepts', () => {
  const key = { apiKey: 'key-of-a-test' };
  const here = { ...key, baseURL: 'http://127.0.0.1:1/v1' };
  const vendor = { ...key, baseURL: 'https://api.openai.com/v1' };

  it('the media types of its API; at the vendor, those of the model', () => {
    expect(openai('m', here).accepts).toEqual(expect.arrayContaining(['image/*', PDF, 'audio/wav', 'audio/mpeg']));
    expect(openai('gpt-5', vendor).accepts).toEqual(['image/*', PDF]);
    expect(openai('gpt-audio', vendor).accepts).toContain('audio/wav');
    expect(openai('o3-mini', vendor).accepts).toEqual([]);
    expect(openaiResponses('gpt-5', here).accepts).toEqual(['image/*', PDF]);
    expect(anthropic('claude-sonnet-5', here).accepts).toEqual(['image/*', PDF, 'text/*']);
  });

  it('the types of the option, and no image where its limits allow none', () => {
    expect(openai('m', { ...here, accepts: ['image/png'] }).accepts).toEqual(['image/png']);
    expect(anthropic('m', { ...here, imageLimits: { mediaTypes: [] } }).accepts).toEqual([PDF, 'text/*']);
    for (const accepts of [['pdf'], 'image/*', [7], ['image/**/x']])
      expect(() => openai('m', { ...here, accepts } as never)).toThrow(ConfigurationError);
  });
});
