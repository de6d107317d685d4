/** Images from the message to the model, through a log on disk (docs/internals/contracts.md, REQ-BED-013). */
import { readdir, rm, stat, writeFile } from 'node:fs/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { createAgent, defineTool, type Model, type StoredPart, toolResult } from '../../src/index.ts';
import { openai } from '../../src/models/openai/openai.ts';
import { modelServer } from '../e2e/modelServer.ts';
import { type Place, place } from '../stores/storeDirectory.ts';
import { type BenchOptions, bench, entry, only, story } from '../support/agentBench.ts';
import { base64, dot, noise, plain, seen, withBlobs } from '../support/samplePictures.ts';
import { asks, echoTool } from '../support/scenarioTools.ts';
import { call, type ScriptedModel, scripted } from '../support/scriptedReplies.ts';

const text = (words: string): StoredPart => ({ type: 'text', text: words });
const image = (data: Uint8Array | string | URL, mediaType = 'image/png') => ({
  type: 'image' as const,
  mediaType,
  data,
});
interface Sent {
  type: string;
  image_url: { url: string };
}
/** Images of the message `back` places before the last one of a request. */
const imagesIn = (model: ScriptedModel, request: number, back = 0): StoredPart[] =>
  (model.calls[request]?.messages.at(-1 - back)?.content ?? []).filter((part) => part.type === 'image');
const lastMessageText = (model: ScriptedModel, request: number): string =>
  (model.calls[request]?.messages ?? [])
    .flatMap(({ content }) => content.map((part) => (part.type === 'text' ? part.text : `<${part.mediaType}>`)))
    .join(' | ');

async function opened(options: BenchOptions) {
  const found = await bench(options);
  onTestFinished(() => found.agent.close());
  return found;
}

async function onDisk(replies: Parameters<typeof scripted>[0], at?: Place, more: Partial<Model> = {}) {
  const found = at ?? (await place());
  const model = { ...scripted(replies), ...more } as ScriptedModel;
  const { conversation, agent } = await opened({ model, store: found.store });
  return { model, conversation, agent, place: found, blobs: () => readdir(found.path('c.blobs')) };
}
const tool = (execute: () => unknown) =>
  defineTool({ name: 'look', description: 'Looks.', parameters: z.object({}), execute });

describe('S003-32 a message with two images', () => {
  it('both references are kept; an image above the limit is scaled to fit, and one below is sent byte for byte', async () => {
    const [large, small] = [await plain(4_000, 3_000), await noise(64, 48, 'jpeg')];
    const { model, conversation, blobs, place: at } = await onDisk(['Two areas.']);
    const run = conversation.send([text('See'), image(large), image(small, 'image/jpeg')]);
    expect(await run.text).toBe('Two areas.');
    const { content } = await entry(conversation, 'user-message');
    const references = content.map((part) => (part.type === 'text' ? part.text : part.data));
    expect(references).toEqual([
      'See',
      expect.stringMatching(/^blob:[0-9a-f]{64}:image\/png$/),
      expect.stringMatching(/^blob:[0-9a-f]{64}:image\/jpeg$/),
    ]);
    expect(conversation.messages()[0]?.content).toEqual(content);
    expect(conversation.view().cycles[0]?.root.content).toEqual(content);
    const [first, second] = imagesIn(model, 0) as { data: string; mediaType: string }[];
    expect(await seen(first?.data ?? '')).toEqual({ format: 'png', width: 2_000, height: 1_500 });
    expect(second).toEqual({ type: 'image', mediaType: 'image/jpeg', data: base64(small) });
    expect((await blobs()).length).toBe(2);
    for (const name of await blobs()) expect((await stat(at.path(`c.blobs/${name}`))).mode & 0o777).toBe(0o600);
  });

  it('another process sends the same bytes again', async () => {
    const first = await onDisk(['One.', 'Two.']);
    await first.conversation.send([image(await plain(2_600, 1_000, 'jpeg')), image(dot)]).result;
    await first.conversation.send('And?').result;
    await first.agent.close();
    const later = await onDisk(['Three.'], first.place);
    await later.conversation.send('And now?').result;
    const [before, after] = [first.model.calls[1]?.messages, later.model.calls[0]?.messages];
    expect(JSON.stringify(after?.slice(0, 3))).toBe(JSON.stringify(before?.slice(0, 3)));
    expect(before?.[0]?.content.map(({ type }) => type)).toEqual(['image', 'image']);
  });

  it('an image is scaled once, however many requests contain it', async () => {
    let scaled = 0;
    const small = await plain(10, 10);
    const scaleImage = async () => {
      scaled += 1;
      return small;
    };
    const model = scripted(['a', 'b', 'c']);
    const agent = createAgent({ model, ports: { scaleImage } });
    const conversation = await agent.open();
    await conversation.send([image(await plain(2_001, 2))]).result;
    for (const words of ['again', 'and again']) await conversation.send(words).result;
    expect(scaled).toBe(1);
    expect(imagesIn(model, 2, 4)).toEqual([{ type: 'image', mediaType: 'image/png', data: base64(small) }]);
  });

  it('a server receives data: URLs, and an http: URL unchanged', async () => {
    const server = await modelServer((reply) => {
      reply.text('Seen.');
      reply.finish('stop');
    });
    const [large, small] = [await plain(3_000, 30), await noise(20, 20, 'webp')];
    const model = openai('m', { apiKey: 'not-needed', baseURL: server.baseURL, imageLimits: { maxPixels: 1_000 } });
    const agent = createAgent({ model, store: (await place()).store });
    const web = 'https://pictures.test/a.png?b=%20';
    const run = (await agent.open()).send([text('See'), image(large), image(small, 'image/webp'), image(new URL(web))]);
    expect(await run.text).toBe('Seen.');
    const [words, first, second, third] = (server.asked[0]?.messages[0]?.content ?? []) as Sent[];
    expect(words).toEqual({ type: 'text', text: 'See' });
    const [head, data = ''] = first?.image_url.url.split(',') ?? [];
    expect(head).toBe('data:image/png;base64');
    expect(await seen(data)).toEqual({ format: 'png', width: 1_000, height: 10 });
    expect(second).toEqual({ type: 'image_url', image_url: { url: `data:image/webp;base64,${base64(small)}` } });
    expect(third).toEqual({ type: 'image_url', image_url: { url: web } });
    await agent.close();
  });
});

describe('sources of images', () => {
  it('steers and followUps may contain them, and are queued with references', async () => {
    const { tool: echo } = echoTool();
    const { plugin } = asks('echo');
    const at = await place();
    const model = scripted([[call('c1', 'echo', { m: 'x' })], 'Steered.', 'Followed.']);
    const { conversation } = await opened({ model, tools: [echo], plugins: [plugin], store: at.store });
    await conversation.send('Go.').result;
    const receipt = conversation.followUp([image(dot)]);
    const queued = await entry(conversation, 'message-queued');
    expect(queued.messageId).toBe(receipt.messageId);
    expect(queued.content[0]).toMatchObject({ data: expect.stringMatching(/^blob:/) });
    expect(conversation.queue[0]?.content).toEqual(queued.content);
    await conversation.decide({ callId: 'c1', action: 'approve' });
    await conversation.resume().result;
    expect(await receipt.delivered).toBe('delivered');
    expect(JSON.stringify(conversation.log()).includes(base64(dot))).toBe(false);
  });

  it('a tool or a plugin that changes a result may add them; the model receives them, and calls stay paired', async () => {
    const at = await place();
    const other = await plain(3, 3);
    const model = scripted([[call('c1', 'look'), call('c2', 'look')], 'Seen.']);
    const { conversation } = await opened({
      model,
      tools: [tool(() => [text('A picture:'), image(dot)])],
      plugins: [
        {
          name: 'adds',
          afterToolExecute: ({ call: { callId }, result }) =>
            callId === 'c2' ? { result: [...result, image(other)] } : undefined,
        },
      ],
      store: at.store,
    });
    expect(await conversation.send('Look.').text).toBe('Seen.');
    const results = conversation.log().flatMap((each) => (each.type === 'tool-result' ? [each.content] : []));
    expect(results.flat().filter((part) => part.type === 'image').length).toBe(3);
    expect(JSON.stringify(results)).not.toContain(base64(dot));
    expect(await readdir(at.path('c.blobs'))).toHaveLength(2);
    expect(imagesIn(model, 1, 1)).toEqual([image(base64(dot))]);
    expect(imagesIn(model, 1)).toEqual([image(base64(dot)), image(base64(other))]);
  });

  it('an earlier history may contain them, as bytes or base64', async () => {
    const at = await place();
    const model = scripted(['Yes.']);
    const agent = createAgent({ model, store: at.store });
    const conversation = await agent.open('c', {
      history: [
        { role: 'user', content: [image(dot)] },
        { role: 'assistant', content: [text('Red.')], toolCalls: [] },
        { role: 'user', content: [image(base64(dot))] },
        { role: 'assistant', content: [text('Red again.')], toolCalls: [] },
      ],
    });
    await conversation.send('Sure?').result;
    expect(await readdir(at.path('c.blobs'))).toHaveLength(1);
    expect([imagesIn(model, 0, 4), imagesIn(model, 0, 2)]).toEqual([[image(base64(dot))], [image(base64(dot))]]);
    await agent.close();
    const missing = { role: 'user' as const, content: [image(`blob:${'0'.repeat(64)}:image/png`)] };
    await expect(createAgent({ model, store: at.store }).open('d', { history: [missing] })).rejects.toMatchObject({
      code: 'store',
    });
  });

  it('a store without blobs keeps them as base64 in the entry', async () => {
    const model = scripted(['Yes.', 'Still.']);
    const store = withBlobs((await place()).store, () => ({}));
    const { conversation } = await opened({ model, store });
    await conversation.send([image(dot)]).result;
    expect((await entry(conversation, 'user-message')).content).toEqual([image(base64(dot))]);
    expect(imagesIn(model, 0)).toEqual([image(base64(dot))]);
  });

  it('send() itself refuses invalid images, and nothing is logged', async () => {
    const { conversation } = await onDisk([]);
    for (const data of ['file:///a.png', new Uint8Array(3), 'nothing'])
      for (const act of ['send', 'steer', 'followUp'] as const)
        expect(() => conversation[act]([image(data)])).toThrow(expect.objectContaining({ code: 'configuration' }));
    expect([conversation.status, story(conversation.log())]).toEqual(['idle', []]);
  });
});

describe('an image that cannot be sent', () => {
  const diagnostics = (log: Parameters<typeof only>[0]): string[] => only(log, 'diagnostic');

  it('a lost or changed blob is a text for the model and one diagnostic, in every request', async () => {
    const first = await onDisk(['One.']);
    await first.conversation.send([image(dot), image(await plain(2, 2))]).result;
    await first.agent.close();
    const [one = '', two = ''] = await first.blobs();
    await rm(first.place.path(`c.blobs/${one}`));
    await writeFile(first.place.path(`c.blobs/${two}`), 'another');
    const later = await onDisk(['Two.', 'Three.'], first.place);
    expect(await later.conversation.send('Still there?').text).toBe('Two.');
    expect(await later.conversation.send('And now?').text).toBe('Three.');
    const gone = '[An image (image/png) belongs here. It is not shown: its bytes are missing.]';
    expect(lastMessageText(later.model, 1)).toBe(`${gone} | ${gone} | One. | Still there? | Two. | And now?`);
    expect(diagnostics(later.conversation.log())).toEqual(['diagnostic image_missing', 'diagnostic image_missing']);
  });

  it('an image that needs scaling is a text too if nothing can scale it', async () => {
    const model = scripted(['Nothing to see.']);
    const scaleImage = async () => {
      throw new Error('the optional package sharp cannot be loaded: npm install sharp');
    };
    const agent = createAgent({ model, ports: { scaleImage } });
    const conversation = await agent.open();
    expect(await conversation.send([image(await plain(2_001, 2)), image(dot)]).text).toBe('Nothing to see.');
    expect(lastMessageText(model, 0)).toMatch(/^\[An image .* could not be scaled\.\] \| <image\/png>$/);
    const diagnostic = await entry(conversation, 'diagnostic');
    expect(diagnostic).toMatchObject({
      code: 'image_not_shown',
      detail: { message: expect.stringContaining('npm install sharp') },
    });
  });

  it('an image is a text too if the model accepts no images', async () => {
    const { model, conversation } = await onDisk(['Blind.'], undefined, { imageLimits: { mediaTypes: [] } });
    await conversation.send([image(dot), image('https://pictures.test/a.png')]).result;
    expect(lastMessageText(model, 0).match(/this model takes no images/g)).toHaveLength(2);
  });

  it('an image is a text too if a tool invented its reference', async () => {
    const references = ['blob:../../../etc/passwd', `blob:${'0'.repeat(64)}:image/png`, 'file:///etc/passwd'];
    for (const data of references) {
      const model = scripted([[call('c1', 'look')], 'Hm.']);
      const { conversation } = await opened({
        model,
        tools: [tool(() => [image(data)])],
        store: (await place()).store,
      });
      expect(await conversation.send('Look.').text).toBe('Hm.');
      expect(lastMessageText(model, 1)).toMatch(/its bytes are missing|the tool's result cannot be read/);
    }
  });

  it('a fallback model with other limits still receives it', async () => {
    const bytes = await plain(3_000, 10);
    const fallback = { ...scripted(['Seen.']), id: 'other', imageLimits: { maxPixels: 4_000 } } as ScriptedModel;
    const model = { ...scripted([new Error('down')]), imageLimits: { mediaTypes: [] } } as ScriptedModel;
    const modelRetry = { attempts: 1, fallbackModels: [fallback] };
    const { conversation } = await opened({ model, policies: { modelRetry }, store: (await place()).store });
    const run = conversation.send([image(bytes)]);
    expect(await run.text).toBe('Seen.');
    expect([lastMessageText(model, 0), imagesIn(fallback, 0)]).toEqual([
      expect.stringContaining('takes no images'),
      [image(base64(bytes))],
    ]);
  });
});

it('a marked result of a tool keeps its images and its outcome', async () => {
  const model = scripted([[call('c1', 'look')], 'Ok.']);
  const { conversation } = await opened({
    model,
    tools: [tool(() => toolResult.error([text('blurred'), image(dot)], 'blur'))],
  });
  await conversation.send('Look.').result;
  expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 failed blur']);
  expect(imagesIn(model, 1)).toEqual([image(base64(dot))]);
});
