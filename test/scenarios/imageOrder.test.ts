/** Bytes are stored before the entry that names them, however long that takes. Acts keep their order meanwhile. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool, type LogHandle, memoryStore, RunchartError } from '../../src/index.ts';
import { bench, entry, only, story } from '../support/agentBench.ts';
import { base64, dot, withBlobs } from '../support/samplePictures.ts';
import { gateTool } from '../support/scenarioTools.ts';
import { call, lines, scripted } from '../support/scriptedReplies.ts';
import { flush } from '../support/virtualClock.ts';

const image = { type: 'image' as const, mediaType: 'image/png', data: dot };

/** A store that writes its blobs when the test permits it. */
function slowBlobs() {
  const asked: { write(): void; fail(error: unknown): void }[] = [];
  let written = 0;
  const putBlob = async (handle: LogHandle, bytes: Uint8Array, mediaType: string): Promise<string> => {
    await new Promise<void>((write, fail) => void asked.push({ write, fail }));
    const reference = await handle.putBlob?.(bytes, mediaType);
    written += 1;
    return reference ?? '';
  };
  const store = withBlobs(memoryStore(), (handle) => ({
    putBlob: (bytes, mediaType) => putBlob(handle, bytes, mediaType),
    getBlob: async (reference) => (await handle.getBlob?.(reference)) ?? new Uint8Array(0),
  }));
  return { store, asked, written: () => written };
}
const full = (): Error => new RunchartError('store', 'the disk is full');

describe('a message with an image', () => {
  it('no entry contains it before its bytes are stored, and the conversation is active meanwhile', async () => {
    const { store, asked, written } = slowBlobs();
    const { conversation } = await bench({ replies: ['Seen.'], store });
    conversation.log$().subscribe(({ type }) => {
      if (type === 'user-message') expect(written()).toBe(1);
    });
    const run = conversation.send([image]);
    await flush();
    expect([conversation.status, story(conversation.log())]).toEqual(['active', []]);
    expect(() => conversation.send('Me too.')).toThrow(expect.objectContaining({ code: 'agent_busy' }));
    asked[0]?.write();
    expect(await run.text).toBe('Seen.');
    expect(conversation.log().some(({ type }) => type === 'user-message')).toBe(true);
  });

  it('it keeps its place: a later message waits for it', async () => {
    const { store, asked } = slowBlobs();
    const gate = gateTool();
    const model = scripted([[call('c1', 'gate')], 'One.', 'Two.', 'Three.']);
    const { conversation } = await bench({ model, tools: [gate.tool], store });
    const run = conversation.send('Go.');
    await gate.begun('c1');
    conversation.followUp([{ type: 'text', text: 'first' }, image]);
    conversation.followUp('second');
    conversation.steer('third');
    await flush();
    expect(conversation.queue).toEqual([]);
    asked[0]?.write();
    await flush();
    expect(only(conversation.log(), 'message-queued')).toEqual([
      'message-queued followUp first',
      'message-queued followUp second',
      'message-queued steer third',
    ]);
    gate.release('c1');
    await run.result;
    await conversation.resume().result;
    await flush();
    expect(lines(model.calls[3]?.messages ?? []).filter((line) => line.startsWith('user'))).toEqual([
      'user Go.',
      'user third',
      'user first[image/png]',
      'user second',
    ]);
  });

  it('it counts as queued while its bytes are being stored', async () => {
    const { store } = slowBlobs();
    const gate = gateTool();
    const policies = { limits: { queue: 2 } };
    const { conversation } = await bench({ replies: [[call('c1', 'gate')]], tools: [gate.tool], store, policies });
    void conversation.send('Go.');
    await gate.begun('c1');
    conversation.followUp([image]);
    conversation.steer([image]);
    expect(() => conversation.steer('One more.')).toThrow(expect.objectContaining({ code: 'limit' }));
    await conversation.close();
  });
});

describe('a message whose bytes cannot be stored is not accepted', () => {
  it('a send ends with an error, the log contains nothing of it, and the next message is accepted', async () => {
    const { store, asked } = slowBlobs();
    const { conversation } = await bench({ replies: ['Hello.'], store });
    const run = conversation.send([image]);
    asked[0]?.fail(full());
    const result = await run.result;
    expect([result.termination, result.cause, result.error?.code]).toEqual(['Error', 'store', 'store']);
    expect(result.error?.message).toContain('the disk is full');
    await flush();
    expect(story(conversation.log())).toEqual(['diagnostic image_not_stored']);
    expect(conversation.status).toBe('idle');
    expect(await conversation.send('Hi.').text).toBe('Hello.');
  });

  it('a steer and a followUp are returned, the active run continues, and later messages keep their order', async () => {
    const { store, asked } = slowBlobs();
    const gate = gateTool();
    const { conversation, model } = await bench({ replies: [[call('c1', 'gate')], 'One.'], tools: [gate.tool], store });
    const run = conversation.send('Go.');
    await gate.begun('c1');
    const lost = [conversation.steer([image]), conversation.followUp([image])];
    const kept = conversation.steer('kept');
    asked[1]?.fail(full());
    asked[0]?.fail('no reason');
    gate.release('c1');
    expect(await run.text).toBe('One.');
    expect(await Promise.all([...lost, kept].map(({ delivered }) => delivered))).toEqual([
      'returned',
      'returned',
      'delivered',
    ]);
    expect(lines(model.calls[1]?.messages ?? []).at(-1)).toBe('user kept');
    expect(only(conversation.log(), 'diagnostic')).toEqual(Array(2).fill('diagnostic image_not_stored'));
  });

  it('a message is refused too if putBlob returns no reference', async () => {
    for (const answer of [undefined, '', 7, 'x'.repeat(2_000)]) {
      const store = withBlobs(memoryStore(), () => ({ putBlob: async () => answer as never }));
      const { conversation } = await bench({ store });
      expect((await conversation.send([image]).result).error?.message).toContain('putBlob must answer');
    }
  });
});

describe('a store that never answers', () => {
  it('it delays no cancel: the message is returned, and no part of it is logged', async () => {
    for (const how of ['run', 'conversation', 'signal'] as const) {
      const { store } = slowBlobs();
      const { conversation } = await bench({ replies: ['Hello.'], store });
      const abort = new AbortController();
      const run = conversation.send([image], { signal: abort.signal });
      await flush();
      if (how === 'run') await run.cancel();
      else if (how === 'conversation') await conversation.cancel();
      else abort.abort();
      expect((await run.result).termination).toBe('Cancelled');
      expect([conversation.status, story(conversation.log())]).toEqual(['idle', []]);
      expect(await conversation.send('Hi.').text).toBe('Hello.');
    }
  });

  it('no run starts after a cancel of the run that the message should steer: the message is returned', async () => {
    const { store, asked } = slowBlobs();
    const gate = gateTool();
    const { conversation, model } = await bench({
      replies: [[call('c1', 'gate')], 'Again.'],
      tools: [gate.tool],
      store,
    });
    conversation.send('Go.');
    await gate.begun('c1');
    const { delivered } = conversation.steer([image]);
    await conversation.cancel();
    asked[0]?.write();
    expect(await delivered).toBe('returned');
    await flush();
    expect([conversation.status, model.calls.length]).toEqual(['idle', 1]);
  });

  it('it delays no close: waiting messages are returned', async () => {
    const { store, asked } = slowBlobs();
    const gate = gateTool();
    const { conversation } = await bench({ replies: [[call('c1', 'gate')]], tools: [gate.tool], store });
    const run = conversation.send('Go.');
    await gate.begun('c1');
    const [steer, followUp] = [conversation.steer([image]), conversation.followUp([image])];
    await conversation.close();
    expect([await steer.delivered, await followUp.delivered]).toEqual(['returned', 'returned']);
    expect((await run.result).termination).toBe('Cancelled');
    asked[0]?.write();
    asked[1]?.fail(full());
    await flush();
    expect(only(conversation.log(), 'message-queued', 'diagnostic')).toEqual([]);
  });

  it('it delays no cancel of a tool whose image is being stored', async () => {
    const { store } = slowBlobs();
    const look = defineTool({ name: 'look', description: 'Looks.', parameters: z.object({}), execute: () => [image] });
    const { conversation, clock } = await bench({ replies: [[call('c1', 'look')]], tools: [look], store });
    const run = conversation.send('Look.');
    await entry(conversation, 'tool-started');
    await flush();
    expect(await clock.until(conversation.cancel())).toBeLessThanOrEqual(100);
    expect((await run.result).termination).toBe('Cancelled');
    expect(only(conversation.log(), 'tool-result')).toEqual(['tool-result c1 cancelled cancelled']);
  });
});

it('if the image of a tool cannot be stored, the model is informed, and the rest of the result is kept', async () => {
  const store = withBlobs(memoryStore(), () => ({ putBlob: () => Promise.reject(full()) }));
  const execute = () => [{ type: 'text', text: 'A dot:' }, image];
  const look = defineTool({ name: 'look', description: 'Looks.', parameters: z.object({}), execute });
  const { conversation, model } = await bench({ replies: [[call('c1', 'look')], 'Hm.'], tools: [look], store });
  expect(await conversation.send('Look.').text).toBe('Hm.');
  expect(lines(model.calls[1]?.messages ?? []).at(-1)).toBe(
    'c1 A dot:[An image belongs here. It could not be stored.]',
  );
  expect(only(conversation.log(), 'tool-result', 'diagnostic')).toEqual([
    'diagnostic image_not_stored',
    'tool-result c1 succeeded',
  ]);
  expect(JSON.stringify(conversation.log())).not.toContain(base64(dot));
});
