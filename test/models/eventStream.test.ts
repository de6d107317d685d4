/** Tests the limits of an event stream: the size of an event, and invalid lines between events. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { vendorClient } from '../../src/models/openai/vendorClient.ts';
import { eventStream } from '../../src/models/wire/eventStream.ts';
import { utf8 } from './scriptedFetch.ts';

/** The events of these pieces, and the code of the failure that ended them. */
function read(pieces: readonly (string | Uint8Array)[], limit?: number): string[] {
  const events: string[] = [];
  const stream = eventStream(
    (data, name, cut) => events.push([data, name, cut && 'cut'].filter(Boolean).join(' ')),
    limit,
  );
  try {
    for (const piece of pieces) stream.push(typeof piece === 'string' ? utf8(piece) : piece);
    stream.end();
  } catch (error) {
    events.push((error as { code: string }).code);
  }
  return events;
}

describe('an event stream', () => {
  it.each([
    ['lines that end with LF', 'data: a\n\ndata: b\n\n', ['a', 'b']],
    ['with CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', ['a', 'b']],
    ['with CR', 'data: a\r\rdata: b\r\r', ['a', 'b']],
    ['several lines of data', 'data: a\r\ndata: b\r\n\r\n', ['a\nb']],
    ['a name', 'event: error\ndata: a\n\ndata: b\n\n', ['a error', 'b']],
    ['comments', ': hi\n\ndata: a\n\n: ho\n\n', ['a']],
    ['a last event without its end', 'data: a\n\ndata: b', ['a', 'b cut']],
    ['a last line without its end', 'data: a\n\ndata: b\n', ['a', 'b cut']],
    ['characters of several bytes', 'data: ä🎉\n\n', ['ä🎉']],
  ])('has the same events however it is cut: %s', (_, text, events) => {
    expect(read([text])).toEqual(events);
    const bytes = utf8(text);
    expect(read([...bytes].map((byte) => new Uint8Array([byte])))).toEqual(events);
    for (let at = 0; at <= bytes.length; at += 1)
      expect(read([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(events);
  });

  it('accepts any number of events up to the limit, and none above it', () => {
    const event = (length: number): string => `data: ${'x'.repeat(length)}\n\n`;
    const most = 100;
    const bytes = most - event(0).length;
    expect(read(Array(9).fill(event(bytes)), most)).toHaveLength(9);
    expect(read([event(bytes), event(bytes + 9)], most)).toEqual(['x'.repeat(bytes), 'frame-too-large']);
    expect(read(['x'.repeat(most), 'x'], most)).toEqual(['frame-too-large']);
    expect(read([event(bytes), ...Array(most + 1).fill(':')], most).at(-1)).toBe('frame-too-large');
  });

  it('skips 1,000 invalid lines between two events, and fails at one more', () => {
    const strange = (lines: number): string => 'none: x\n'.repeat(lines);
    const event = 'data: a\n\n';
    expect(read([strange(1_000), event, strange(1_000), event])).toEqual(['a', 'a']);
    expect(read([event, strange(1_001), event])).toEqual(['a', 'bad-frame']);
  });
});

describe('in a page', () => {
  afterEach(() => vi.unstubAllGlobals());

  it.each([
    ['the vendor by default', {}, false],
    ['the vendor by its address', { baseURL: 'https://api.openai.com/v1' }, false],
    ['the vendor in a region', { baseURL: 'https://eu.api.openai.com/v1' }, false],
    ['a proxy of the page', { baseURL: 'https://app.test/v1' }, true],
    ['a server that is called like the vendor', { baseURL: 'https://my-api.openai.com/v1' }, true],
  ])('a key goes to %s: %s', (_, options, isTaken) => {
    vi.stubGlobal('window', { document: {} });
    vi.stubGlobal('navigator', {});
    const made = () => vendorClient({ apiKey: 'sk-0123', ...options });
    if (isTaken) expect(made().apiKey).toBe('sk-0123');
    else expect(made).toThrow(expect.objectContaining({ code: 'configuration' }));
  });
});
