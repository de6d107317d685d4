/** Secrets in streamed texts, in every spelling of common writers, and in keys that are equal after redaction. */
import { expect, test } from 'vitest';
import { type InFlight, type Live, type ModelPart, toolResult } from '../../src/index.ts';
import { SecretFreeText, withoutSecrets } from '../../src/log/secretText.ts';
import { call, calls, codesOf, entriesOf, opened, plainTool, playTool, resultText, scripted } from './hostileAgent.ts';
import { watchEachTest } from './hostileChecks.ts';

watchEachTest();

const OVERLAPPING: { secrets: readonly string[] }[] = [
  { secrets: ['abab'] },
  { secrets: ['aa'] },
  { secrets: ['abc', 'bcab', 'c'] },
  { secrets: ['aab', 'abaab', 'b'] },
  { secrets: ['abcabc', 'ca'] },
  { secrets: ['ab', 'ba'] },
];

/** Every text with this number of letters. */
function textsOf(letters: string, length: number): string[] {
  let texts = [''];
  for (let at = 0; at < length; at++) texts = texts.flatMap((text) => [...letters].map((letter) => text + letter));
  return texts;
}

/** The shown text if it is cut before each letter whose bit is set. */
function shownPieces(text: string, cuts: number, secrets: readonly string[]): string[] {
  const stream = new SecretFreeText();
  const pieces = [''];
  for (const [at, letter] of [...text].entries()) {
    if ((cuts & (1 << at)) !== 0) pieces.push('');
    pieces[pieces.length - 1] += letter;
  }
  return [...pieces.map((piece) => stream.push(piece, secrets)), stream.end(secrets)];
}

test.each(OVERLAPPING)('the redacted pieces of a text equal the redacted whole text: $secrets', ({ secrets }) => {
  const wrong: string[] = [];
  for (const text of textsOf('abc', 6)) {
    const whole = withoutSecrets(text, secrets);
    for (let cuts = 0; cuts < 64; cuts += 2) {
      const shown = shownPieces(text, cuts, secrets).join('');
      if (shown !== whole) wrong.push(`${text} cut at ${cuts}: ${shown}, not ${whole}`);
    }
  }
  expect(wrong).toEqual([]);
});

test('a piece is delayed only while it may be the start of a secret', () => {
  const stream = new SecretFreeText();
  const shown = ['Hello s', 'o', ', s', 'k-', 'live', '-1 and s'].map((piece) => stream.push(piece, ['sk-live-1']));
  expect(shown).toEqual(['Hello ', 'so', ', ', '', '', '[redacted] and ']);
  expect(stream.end(['sk-live-1'])).toBe('s');
});

const SECRET = 'sk-live-0123456789abcdef';
const finish: ModelPart = { type: 'finish', reason: 'stop' };
const inPieces = (text: string, type: 'text-delta' | 'reasoning-delta'): ModelPart[] =>
  [...text].map((letter) => ({ type, text: letter }));

test('joined streamed texts equal the texts of the entries, also for a listener that arrives at any piece', async () => {
  const parts = [
    ...inPieces(`think sk- ${SECRET}`, 'reasoning-delta'),
    ...inPieces(`a ${SECRET}${SECRET} s`, 'text-delta'),
    finish,
  ];
  for (let join = 0; join <= parts.length; join++) {
    const late: Live[] = [];
    const early: Live[] = [];
    let begin = (): void => {};
    const model = {
      id: 'm',
      async *stream() {
        for (const [at, part] of parts.entries()) {
          if (at === join) begin();
          yield part;
        }
      },
    };
    const conversation = await opened({ model, secrets: [SECRET] });
    conversation.live$.subscribe((signal) => early.push(signal));
    begin = () => void conversation.live$.subscribe((signal) => late.push(signal));
    await conversation.send('go').result;
    const textsOfLog = (type: string): string =>
      conversation
        .log()
        .flatMap((entry) => (entry.type === 'agent-output' && entry.item.type === type ? [entry.item] : []))
        .map((item) => ('text' in item ? item.text : ''))
        .join('');
    const shown = (signals: readonly Live[], type: string): string =>
      signals.map((signal) => (signal.type === type && 'text' in signal ? signal.text : '')).join('');
    for (const signals of join < parts.length ? [early, late] : [early]) {
      expect(shown(signals, 'text-delta'), `from piece ${join}`).toBe(textsOfLog('assistant'));
      expect(shown(signals, 'reasoning-delta'), `from piece ${join}`).toBe(textsOfLog('reasoning'));
    }
  }
});

test('an interrupted reply discards its delayed text, and the next attempt contains none of it', async () => {
  let attempt = 0;
  const model = {
    id: 'm',
    async *stream(): AsyncGenerator<ModelPart> {
      attempt += 1;
      yield { type: 'text-delta', text: attempt === 1 ? 'first sk-li' : 've-0123456789abcdef' };
      if (attempt === 1) throw new Error('broken');
      yield finish;
    },
  };
  const seen: (string | null)[] = [];
  const conversation = await opened({ model, secrets: [SECRET], policies: { modelRetry: { baseMs: 1 } } });
  conversation.live$.subscribe((signal) => {
    if (signal.type === 'text-delta') seen.push(signal.text);
    if (signal.type === 'reset') {
      seen.push(null);
      expect(conversation.inFlight).toBeNull();
    }
  });
  await conversation.send('go').result;
  expect(seen).toEqual(['first ', null, 've-0123456789abcdef']);
  expect(codesOf(conversation.log())).toEqual([]);
});

test('streamed arguments are shown in flight as signalled, separately for each call', async () => {
  const text = (index: number, piece: string, name?: string): ModelPart => ({
    type: 'tool-call-delta',
    index,
    text: piece,
    ...(name !== undefined && { name }),
  });
  const inFlight: (InFlight | null)[] = [];
  const model = scripted([
    [text(0, '{"a":"sk-live-', 't'), text(1, '{"b":"x', 't'), text(0, '0123456789abcdef"}'), finish],
  ]);
  const conversation = await opened({ model, secrets: [SECRET], tools: [plainTool('t', () => 'ok')] });
  conversation.live$.subscribe(({ type }) => type === 'tool-input-delta' && inFlight.push(conversation.inFlight));
  await conversation.send('go').result;
  expect(inFlight.at(-1)?.toolInputs).toEqual([
    { index: 0, name: 't', text: '{"a":"[redacted]"}' },
    { index: 1, name: 't', text: '{"b":"x' },
  ]);
  expect(inFlight[0]?.toolInputs).toEqual([{ index: 0, name: 't', text: '{"a":"' }]);
});

/** Other spellings of `p"ß/w (x)+`, letter by letter. */
const FORMS: readonly [string, string][] = [
  ['plain text', 'p"ß/w (x)+'],
  ['JSON', 'p\\"ß/w (x)+'],
  ['JSON in ASCII', 'p\\"\\u00df/w (x)+'],
  ['JSON with escaped slashes', 'p\\"ß\\/w (x)+'],
  ['JSON in ASCII with escaped slashes', 'p\\"\\u00df\\/w (x)+'],
  ['a URL', 'p%22%C3%9F%2Fw%20(x)%2B'],
  ['a URL with small letters', 'p%22%c3%9f%2fw%20(x)%2b'],
  ['a URL that escapes all it may', 'p%22%C3%9F%2Fw%20%28x%29%2B'],
  ['a path of a URL', 'p%22%C3%9F/w%20%28x%29%2B'],
  ['a form', 'p%22%C3%9F%2Fw+%28x%29%2B'],
];
test.each(FORMS)('a secret is redacted if it is written as %s', async (_, form) => {
  const { log } = await playTool(
    plainTool('t', () => `<${form}>`),
    '{}',
    { secrets: ['p"ß/w (x)+'] },
  );
  expect(resultText(log)).toBe('<[redacted]>');
});

test('keys that are equal after redaction keep every value', async () => {
  const state = { [`${SECRET}-a`]: 1, 'sk-other-key-a': 2, '[redacted]-a': 3, plain: 4 };
  const tool = plainTool('t', () => toolResult.success('ok', { state }));
  const { log } = await playTool(tool, '{}', { secrets: [SECRET, 'sk-other-key'] });
  const [entry] = entriesOf(log, 'state-changed');
  const writes = entry?.writes ?? {};
  expect(Object.keys(writes).sort()).toEqual(['[redacted]-a', '[redacted]-a 2', '[redacted]-a 3', 'plain']);
  expect(writes['[redacted]-a']).toBe(3);
  expect(Object.values(writes).sort()).toEqual([1, 2, 3, 4]);
});

test('progress that is not JSON is refused with one diagnostic for the call, and the call continues', async () => {
  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  const tool = plainTool('t', (_, context: { progress(update: unknown): void }) => {
    for (const update of [cycle, 1n, () => 1, 'fine', cycle]) context.progress(update);
    return 'ok';
  });
  const conversation = await opened({ model: scripted([calls(call('c1', 't'))]), tools: [tool] });
  const updates: unknown[] = [];
  conversation.live$.subscribe((signal) => signal.type === 'tool-progress' && updates.push(signal.update));
  await conversation.send('go').result;
  expect(updates).toEqual(['started', 'fine', 'ended']);
  expect(codesOf(conversation.log())).toEqual(['progress_refused']);
  expect(resultText(conversation.log())).toBe('ok');
});
